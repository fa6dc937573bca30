# 2,000 iterations of SGD with polynomial decay, validated every 400.
optim_wrapper = dict(
    type='OptimWrapper', optimizer=dict(type='SGD', lr=0.1, momentum=0.9, weight_decay=5e-4), clip_grad=None)
param_scheduler = [dict(type='PolyLR', power=0.9, eta_min=0., begin=0, end=2000, by_epoch=False)]
train_cfg = dict(type='IterBasedTrainLoop', max_iters=2000, val_interval=400)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
default_hooks = dict(
    timer=dict(type='IterTimerHook'),
    logger=dict(type='LoggerHook', interval=50, log_metric_by_epoch=False),
    param_scheduler=dict(type='ParamSchedulerHook'),
    checkpoint=dict(
        type='mmssl.AtomicCheckpointHook', by_epoch=False, interval=500, max_keep_ckpts=2, save_best='mIoU'),
    sampler_seed=dict(type='DistSamplerSeedHook'),
    visualization=dict(type='SegVisualizationHook'))
auto_scale_lr = dict(enable=False, base_batch_size=4)
