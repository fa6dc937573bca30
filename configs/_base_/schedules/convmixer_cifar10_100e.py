# 100 epochs of 391 batches of 128: AdamW, five epochs of warm-up, then a cosine to 0.
_base_ = './cls_hooks.py'
optim_wrapper = dict(
    type='OptimWrapper', optimizer=dict(type='AdamW', lr=5e-3, weight_decay=0.01), clip_grad=dict(max_norm=1.0))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, begin=0, end=1955),
    dict(type='CosineAnnealingLR', T_max=37145, by_epoch=False, begin=1955, end=39100),
]
train_cfg = dict(max_iters=39100, val_interval=3910)
default_hooks = dict(checkpoint=dict(interval=3910))
auto_scale_lr = dict(enable=False, base_batch_size=128)
