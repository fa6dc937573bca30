# 100 epochs of 5,005 batches of 256: SGD, five epochs of linear warm-up, then a cosine to 0.
_base_ = './cls_hooks.py'
optim_wrapper = dict(
    type='OptimWrapper', optimizer=dict(type='SGD', lr=0.1, momentum=0.9, weight_decay=5e-5, nesterov=True))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.1, by_epoch=False, begin=0, end=25025),
    dict(type='CosineAnnealingLR', T_max=475475, by_epoch=False, begin=25025, end=500500),
]
train_cfg = dict(max_iters=500500, val_interval=5005)
default_hooks = dict(checkpoint=dict(interval=5005))
auto_scale_lr = dict(enable=False, base_batch_size=256)
