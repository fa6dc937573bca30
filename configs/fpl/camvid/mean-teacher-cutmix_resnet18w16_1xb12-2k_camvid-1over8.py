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
    semi_train_cfg=dict(unsup_weight=1.0, unsup_begin=300, unsup_ramp=300, mix=_base_.cutmix))
auto_scale_lr = dict(base_batch_size=12)
custom_hooks = [
    dict(type='mmssl.MeanTeacherHook', momentum=0.01),
    dict(type='mmssl.FPLDiagnosticsHook', interval=50),
]
