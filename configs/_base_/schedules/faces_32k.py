# ArcFace's schedule on CASIA-WebFace: 32,000 iterations of 512 images, the learning rate drops after 20,000 and 28,000.
optim_wrapper = dict(
    type='OptimWrapper', optimizer=dict(type='SGD', lr=0.1, momentum=0.9, weight_decay=5e-4))
param_scheduler = [
    dict(type='MultiStepLR', by_epoch=False, milestones=[20000, 28000], gamma=0.1, begin=0, end=32000)
]
train_cfg = dict(type='IterBasedTrainLoop', max_iters=32000, val_interval=2000)
val_cfg = dict(type='mmssl.FeatureValLoop', flip=True)
test_cfg = dict(type='mmssl.FeatureTestLoop', flip=True)
default_hooks = dict(
    timer=dict(type='IterTimerHook'),
    logger=dict(type='LoggerHook', interval=100, log_metric_by_epoch=False),
    param_scheduler=dict(type='ParamSchedulerHook'),
    checkpoint=dict(
        type='mmssl.AtomicCheckpointHook', by_epoch=False, interval=2000, max_keep_ckpts=2,
        save_best='verification/accuracy', rule='greater'),
    sampler_seed=dict(type='DistSamplerSeedHook'),
    visualization=dict(type='VisualizationHook', enable=False))
auto_scale_lr = dict(enable=False, base_batch_size=512)
