# Fine-tuning of a vision transformer in the FixMatch family: 204,800 iterations of AdamW with a learning rate for each
# layer, 5,120 of them warm-up from 0, then cos(7 pi (k - w) / 16 (K - w)).
_base_ = './cosine_7_16.py'
max_iters, warmup = 200 * 1024, 5120
optim_wrapper = dict(
    optimizer=dict(_delete_=True, type='AdamW', lr=5e-4, betas=(0.9, 0.999), weight_decay=5e-4),
    constructor='mmssl.LayerDecayOptimWrapperConstructor',
    paramwise_cfg=dict(
        _delete_=True,
        layer_decay_rate=0.5,
        norm_decay_mult=0.,
        flat_decay_mult=0.,
        custom_keys={
            '.cls_token': dict(decay_mult=0.),
            '.pos_embed': dict(decay_mult=0.),
        }))
param_scheduler = [
    # Its first factor cannot be 0, since the next ones are computed from it.
    dict(type='LinearLR', start_factor=1e-8, begin=0, end=warmup + 1, by_epoch=False),
    dict(
        type='CosineAnnealingLR',
        T_max=16 * (max_iters - warmup) / 7,
        eta_min_ratio=-1.,
        begin=warmup,
        end=max_iters,
        by_epoch=False),
]
train_cfg = dict(max_iters=max_iters, val_interval=2048)
default_hooks = dict(checkpoint=dict(interval=2048))
auto_scale_lr = dict(base_batch_size=16)
