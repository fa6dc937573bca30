# Online label smoothing + ADR, ResNet-50, Flowers-102.
_base_ = [
    './ce_resnet50_1xb64-100e_flowers102.py',
    '../../_base_/methods/online_label_smoothing.py',
    '../../_base_/methods/adr.py',
]
model = dict(
    head=dict(
        loss=dict(
            _delete_=True,
            type='mmssl.CombinedLoss',
            losses=[dict(_base_.ols_loss, num_classes=102), _base_.adr_loss])))
custom_hooks = [dict(_base_.ols_hook, interval=32)]
