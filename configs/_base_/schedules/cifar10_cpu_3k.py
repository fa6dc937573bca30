# 3,000 iterations for two CPU cores, with a cosine to 0.
_base_ = './cls_hooks.py'
optim_wrapper = dict(
    type='OptimWrapper', optimizer=dict(type='SGD', lr=0.02, momentum=0.9, weight_decay=5e-4))
param_scheduler = [dict(type='CosineAnnealingLR', T_max=3000, by_epoch=False, begin=0, end=3000)]
train_cfg = dict(max_iters=3000, val_interval=1000)
default_hooks = dict(checkpoint=dict(interval=500))
auto_scale_lr = dict(enable=False, base_batch_size=128)
