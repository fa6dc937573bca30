# UniMatch on CamVid 1/8, at CPU size.
_base_ = [
    '../../_base_/models/mean_teacher_resnet18_w16.py',
    '../../_base_/datasets/camvid_unimatch.py',
    '../../_base_/methods/unimatch.py',
    '../../_base_/schedules/cpu_2k.py',
    '../../_base_/default_runtime.py',
]
# The student starts from random weights: labels first.
model = dict(
    segmentor=dict(decode_head=dict(loss_decode=_base_.weighted_cross_entropy)),
    semi_train_cfg=dict(**_base_.unimatch, unsup_weight=0.3, unsup_begin=600),
    semi_test_cfg=dict(predict_on='student'))
auto_scale_lr = dict(base_batch_size=8)
custom_hooks = [_base_.unimatch_hook, dict(type='mmssl.FPLDiagnosticsHook', interval=50)]
