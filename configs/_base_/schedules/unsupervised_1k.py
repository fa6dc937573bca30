# Up to 1,000 iterations on one image, fewer if only 3 labels are left.
optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.1, momentum=0.9))
train_cfg = dict(type='IterBasedTrainLoop', max_iters=1000, val_interval=1000)
default_hooks = dict(
    timer=dict(type='IterTimerHook'),
    logger=dict(type='LoggerHook', interval=50, log_metric_by_epoch=False),
    checkpoint=dict(type='mmssl.AtomicCheckpointHook', by_epoch=False, interval=500, max_keep_ckpts=1),
    sampler_seed=dict(type='DistSamplerSeedHook'))
custom_hooks = [dict(type='mmssl.MinLabelsHook', min_labels=3)]
# One image is the batch, however many GPUs there are.
auto_scale_lr = dict(enable=False, base_batch_size=1)
