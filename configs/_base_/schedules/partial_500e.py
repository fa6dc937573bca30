# 500 epochs of 196 batches of 256 (CIFAR), SGD with a cosine to 0.
_base_ = './cls_hooks.py'
optim_wrapper = dict(
    type='OptimWrapper', optimizer=dict(type='SGD', lr=0.05, momentum=0.9, weight_decay=1e-3))
param_scheduler = [dict(type='CosineAnnealingLR', T_max=98000, by_epoch=False, begin=0, end=98000)]
train_cfg = dict(max_iters=98000, val_interval=1960)
default_hooks = dict(checkpoint=dict(interval=1960))
auto_scale_lr = dict(enable=False, base_batch_size=256)
