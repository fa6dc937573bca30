# CPS on CamVid 1/8, at CPU size.
_base_ = [
    '../../_base_/models/cps_resnet18_w16.py',
    '../../_base_/datasets/camvid_semi.py',
    '../../_base_/schedules/cpu_2k.py',
    '../../_base_/default_runtime.py',
]
# The students start from random weights: labels first, and a smaller weight than the published 1.5 (with CutMix 1).
model = dict(
    segmentor=dict(decode_head=dict(loss_decode=_base_.weighted_cross_entropy)),
    semi_train_cfg=dict(unsup_weight=0.3, unsup_begin=600, unsup_on='all'))
auto_scale_lr = dict(base_batch_size=12)
custom_hooks = [dict(type='mmssl.FPLDiagnosticsHook', interval=50)]
