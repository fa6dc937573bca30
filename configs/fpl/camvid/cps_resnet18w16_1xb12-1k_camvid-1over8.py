# CPS on CamVid 1/8, at CPU size.
_base_ = [
    '../../_base_/models/cps_resnet18_w16.py',
    '../../_base_/datasets/camvid_semi.py',
    '../../_base_/schedules/cpu_1k.py',
    '../../_base_/default_runtime.py',
]
model = dict(semi_train_cfg=dict(unsup_weight=1.5, unsup_on='all'))
auto_scale_lr = dict(base_batch_size=12)
custom_hooks = [dict(type='mmssl.FPLDiagnosticsHook', interval=50)]
