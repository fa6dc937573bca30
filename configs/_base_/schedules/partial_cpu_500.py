# 500 iterations of 64 images for a CPU core, SGD with a cosine to 0. The checkpoint that is kept as the best is chosen
# without clean labels.
_base_ = './cls_hooks.py'
optim_wrapper = dict(
    type='OptimWrapper', optimizer=dict(type='SGD', lr=0.05, momentum=0.9, weight_decay=1e-3))
param_scheduler = [dict(type='CosineAnnealingLR', T_max=500, by_epoch=False, begin=0, end=500)]
train_cfg = dict(max_iters=500, val_interval=250)
default_hooks = dict(
    logger=dict(interval=25),
    checkpoint=dict(interval=250, save_best='candidates/covering_rate', rule='greater'))
auto_scale_lr = dict(enable=False, base_batch_size=64)
