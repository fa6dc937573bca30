# AEL, DeepLabV3+ R-50, Cityscapes 1over8.
_base_ = [
    '../../_base_/models/ael_deeplabv3plus_r50_cityscapes.py',
    '../../_base_/datasets/cityscapes_ael.py',
    '../../_base_/schedules/ael.py',
    '../../_base_/default_runtime.py',
]
model = dict(semi_train_cfg=dict(copy_paste=dict(pipeline=_base_.paste_pipeline)))
val_cfg = dict(type='mmssl.SubModelValLoop')
custom_hooks = [dict(type='mmssl.MeanTeacherHook', momentum=0.01, buffers='own'), dict(type='mmssl.AELHook')]
train_cfg = dict(max_iters=32400)
param_scheduler = [dict(type='PolyLR', power=0.9, eta_min=0., begin=0, end=32400, by_epoch=False)]
