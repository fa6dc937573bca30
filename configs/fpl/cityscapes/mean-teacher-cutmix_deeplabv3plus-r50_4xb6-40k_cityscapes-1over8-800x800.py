# Mean teacher + CutMix, DeepLabV3+ R-50, Cityscapes 1over8.
_base_ = [
    '../../_base_/models/mean_teacher_deeplabv3plus_r50_cityscapes.py',
    '../../_base_/datasets/cityscapes_weak_strong.py',
    '../../_base_/methods/cutmix.py',
    '../../_base_/schedules/cps_40k.py',
    '../../_base_/default_runtime.py',
]
model = dict(semi_train_cfg=dict(unsup_weight=1.0, mix=_base_.cutmix))
# Two unlabeled images make a mixed one.
train_dataloader = dict(batch_size=6, sampler=dict(source_ratio=[1, 2]))
auto_scale_lr = dict(base_batch_size=24)
val_cfg = dict(type='mmssl.SubModelValLoop')
custom_hooks = [dict(type='mmssl.MeanTeacherHook', momentum=0.01)]
optim_wrapper = dict(optimizer=dict(lr=0.02))
train_cfg = dict(max_iters=44525)
param_scheduler = [dict(type='PolyLR', power=0.9, eta_min=0., begin=0, end=44525, by_epoch=False)]
