# 400 iterations of AdamW with polynomial decay, for `make demo`.
optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='AdamW', lr=0.01, weight_decay=0.01), clip_grad=None)
param_scheduler = [dict(type='PolyLR', power=0.9, eta_min=0., begin=0, end=400, by_epoch=False)]
train_cfg = dict(type='IterBasedTrainLoop', max_iters=400, val_interval=40)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
default_hooks = dict(
    timer=dict(type='IterTimerHook'),
    logger=dict(type='LoggerHook', interval=10, log_metric_by_epoch=False),
    param_scheduler=dict(type='ParamSchedulerHook'),
    checkpoint=dict(type='mmssl.AtomicCheckpointHook', by_epoch=False, interval=100, max_keep_ckpts=2),
    sampler_seed=dict(type='DistSamplerSeedHook'),
    visualization=dict(type='SegVisualizationHook'))
auto_scale_lr = dict(enable=False, base_batch_size=4)
