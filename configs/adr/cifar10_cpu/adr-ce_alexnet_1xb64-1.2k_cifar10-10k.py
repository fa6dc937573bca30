# Cross entropy + ADR, AlexNet, 10,000 images of CIFAR-10, at CPU size.
_base_ = ['./ce_alexnet_1xb64-1.2k_cifar10-10k.py', '../../_base_/methods/adr.py']
model = dict(
    head=dict(
        loss=dict(
            _delete_=True,
            type='mmssl.CombinedLoss',
            losses=[dict(type='CrossEntropyLoss'), _base_.adr_loss])))
