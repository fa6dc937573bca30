# 1,200 iterations of 64 images for two CPU cores, with a warm-up and a cosine to 0. Rate and length were chosen on
# training images that are held out.
_base_ = './cls_hooks.py'
optim_wrapper = dict(
    type='OptimWrapper', optimizer=dict(type='SGD', lr=0.02, momentum=0.9, weight_decay=5e-4))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.1, by_epoch=False, begin=0, end=100),
    dict(type='CosineAnnealingLR', T_max=1100, by_epoch=False, begin=100, end=1200),
]
train_cfg = dict(max_iters=1200, val_interval=600)
default_hooks = dict(checkpoint=dict(interval=600))
auto_scale_lr = dict(enable=False, base_batch_size=64)
