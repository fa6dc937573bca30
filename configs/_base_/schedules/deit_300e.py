# DeiT: 300 epochs of 1,252 batches of 1,024, AdamW, five epochs of warm-up, then a cosine.
_base_ = './cls_hooks.py'
optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=1e-3, weight_decay=0.05, eps=1e-8, betas=(0.9, 0.999)),
    paramwise_cfg=dict(
        norm_decay_mult=0.0,
        bias_decay_mult=0.0,
        custom_keys={
            '.cls_token': dict(decay_mult=0.0),
            '.pos_embed': dict(decay_mult=0.0)
        }))
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-3, by_epoch=False, begin=0, end=6260),
    dict(type='CosineAnnealingLR', T_max=369340, eta_min=1e-5, by_epoch=False, begin=6260, end=375600),
]
train_cfg = dict(max_iters=375600, val_interval=1252)
default_hooks = dict(checkpoint=dict(interval=1252))
auto_scale_lr = dict(enable=False, base_batch_size=1024)
