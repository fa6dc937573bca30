# Cross entropy + ADR, ResNet-50, Flowers-102.
_base_ = ['./ce_resnet50_1xb64-100e_flowers102.py', '../../_base_/methods/adr.py']
model = dict(
    head=dict(
        loss=dict(
            _delete_=True,
            type='mmssl.CombinedLoss',
            losses=[dict(type='CrossEntropyLoss'), _base_.adr_loss])))
