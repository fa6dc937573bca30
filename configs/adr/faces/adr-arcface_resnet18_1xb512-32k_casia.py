# ArcFace + ADR, ResNet-18, CASIA-WebFace.
_base_ = ['./arcface_resnet18_1xb512-32k_casia.py', '../../_base_/methods/adr.py']
model = dict(
    head=dict(
        loss=dict(
            _delete_=True,
            type='mmssl.CombinedLoss',
            losses=[dict(type='CrossEntropyLoss'), _base_.adr_loss])))
