# CPS of `make demo`.
_base_ = [
    '../_base_/models/cps_resnet18_w16.py',
    '../_base_/datasets/shapes_semi.py',
    '../_base_/schedules/demo_400.py',
    '../_base_/default_runtime.py',
]
model = dict(
    data_preprocessor=dict(data_preprocessor=dict(size=_base_.crop_size)),
    segmentor=dict(data_preprocessor=dict(size=_base_.crop_size), decode_head=dict(num_classes=6)),
    semi_train_cfg=dict(unsup_weight=0.3, unsup_begin=100, unsup_on='all'))
auto_scale_lr = dict(base_batch_size=8)
custom_hooks = [dict(type='mmssl.FPLDiagnosticsHook', interval=10)]
