# UniMatch, DeepLabV3+ R-50, VOC 2012 1over8.
_base_ = [
    '../../_base_/models/unimatch_deeplabv3plus_r50.py',
    '../../_base_/datasets/voc2012_unimatch.py',
    '../../_base_/methods/unimatch.py',
    '../../_base_/schedules/unimatch.py',
    '../../_base_/default_runtime.py',
]
# Both halved, as published.
model = dict(semi_train_cfg=dict(**_base_.unimatch, sup_weight=0.5, unsup_weight=0.5))
custom_hooks = [_base_.unimatch_hook]
train_cfg = dict(max_iters=92560)
param_scheduler = [dict(type='PolyLR', power=0.9, eta_min=0., begin=0, end=92560, by_epoch=False)]
