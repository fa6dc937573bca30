# Training from scratch in the FixMatch family: 2^20 iterations of SGD, whose rate follows cos(7 pi k / 16 K) down to
# 0.195 of the first; no weight decay on normalization and biases.
max_iters = 2**20
optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='SGD', lr=0.03, momentum=0.9, nesterov=True, weight_decay=5e-4),
    paramwise_cfg=dict(norm_decay_mult=0., bias_decay_mult=0.))
# lr (1 + cos(pi k / T)) / 2 + lr_min (1 - cos(pi k / T)) / 2 with lr_min = -lr is lr cos(pi k / T).
param_scheduler = [
    dict(
        type='CosineAnnealingLR', T_max=16 * max_iters / 7, eta_min_ratio=-1., begin=0, end=max_iters, by_epoch=False)
]
train_cfg = dict(type='IterBasedTrainLoop', max_iters=max_iters, val_interval=5120)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
default_hooks = dict(
    timer=dict(type='IterTimerHook'),
    logger=dict(type='LoggerHook', interval=100, log_metric_by_epoch=False),
    param_scheduler=dict(type='ParamSchedulerHook'),
    checkpoint=dict(
        type='mmssl.AtomicCheckpointHook', by_epoch=False, interval=5120, max_keep_ckpts=2, save_best='accuracy/top1'),
    sampler_seed=dict(type='DistSamplerSeedHook'))
auto_scale_lr = dict(enable=False, base_batch_size=512)
