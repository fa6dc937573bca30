# Mean teacher + CutMix on CamVid 1/8, at CPU size.
_base_ = [
    '../../_base_/models/mean_teacher_resnet18_w16.py',
    '../../_base_/datasets/camvid_weak_strong.py',
    '../../_base_/methods/cutmix.py',
    '../../_base_/schedules/cpu_2k.py',
    '../../_base_/default_runtime.py',
]
# The student starts from random weights: labels first.
model = dict(
    segmentor=dict(decode_head=dict(loss_decode=_base_.weighted_cross_entropy)),
    semi_train_cfg=dict(unsup_weight=0.3, unsup_begin=600, mix=_base_.cutmix))
val_cfg = dict(type='mmssl.SubModelValLoop')
auto_scale_lr = dict(base_batch_size=12)
custom_hooks = [
    dict(type='mmssl.MeanTeacherHook', momentum=0.01),
    dict(type='mmssl.FPLDiagnosticsHook', interval=50),
]
