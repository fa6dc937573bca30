# 1,000 iterations with the schedule of cosine_7_16.py, validated every 250.
_base_ = './cosine_7_16.py'
max_iters = 1000
param_scheduler = [
    dict(
        type='CosineAnnealingLR', T_max=16 * max_iters / 7, eta_min_ratio=-1., begin=0, end=max_iters, by_epoch=False)
]
train_cfg = dict(max_iters=max_iters, val_interval=250)
default_hooks = dict(logger=dict(interval=50), checkpoint=dict(interval=500))
auto_scale_lr = dict(base_batch_size=64)
