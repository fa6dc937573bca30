# Online label smoothing + ADR, AlexNet, CIFAR-10.
_base_ = [
    './ce_alexnet_1xb128-120e_cifar10.py',
    '../../_base_/methods/online_label_smoothing.py',
    '../../_base_/methods/adr.py',
]
model = dict(
    head=dict(
        loss=dict(
            _delete_=True,
            type='mmssl.CombinedLoss',
            losses=[dict(_base_.ols_loss, num_classes=10), _base_.adr_loss])))
custom_hooks = [dict(_base_.ols_hook, interval=391)]
