# Cross entropy + ADR, AlexNet, CIFAR-10.
_base_ = ['./ce_alexnet_1xb128-120e_cifar10.py', '../../_base_/methods/adr.py']
model = dict(
    head=dict(
        loss=dict(
            _delete_=True,
            type='mmssl.CombinedLoss',
            losses=[dict(type='CrossEntropyLoss'), _base_.adr_loss])))
