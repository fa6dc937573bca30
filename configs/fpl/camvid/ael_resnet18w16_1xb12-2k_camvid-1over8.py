# AEL on CamVid 1/8, at CPU size.
_base_ = [
    '../../_base_/models/ael_resnet18_w16.py',
    '../../_base_/datasets/camvid_semi.py',
    '../../_base_/schedules/cpu_2k.py',
    '../../_base_/default_runtime.py',
]
# The student starts from random weights: labels first. What is pasted is all but the classes that fill most images.
model = dict(
    segmentor=dict(decode_head=dict(loss_decode=_base_.weighted_cross_entropy)),
    semi_train_cfg=dict(
        unsup_weight=0.3, unsup_begin=600,
        copy_paste=dict(
            type='mmssl.AdaptiveCopyPaste', exclude_classes=['sky', 'building', 'road', 'pavement', 'tree'])))
val_cfg = dict(type='mmssl.SubModelValLoop')
auto_scale_lr = dict(base_batch_size=12)
custom_hooks = [
    dict(type='mmssl.MeanTeacherHook', momentum=0.01),
    dict(type='mmssl.AELHook'),
    dict(type='mmssl.FPLDiagnosticsHook', interval=50),
]
