# The same with 800 iterations.
_base_ = './partial_cpu_500.py'
param_scheduler = [dict(type='CosineAnnealingLR', T_max=800, by_epoch=False, begin=0, end=800)]
train_cfg = dict(max_iters=800, val_interval=400)
default_hooks = dict(checkpoint=dict(interval=400))
