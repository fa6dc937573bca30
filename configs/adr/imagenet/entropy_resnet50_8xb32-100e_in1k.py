# Entropy penalty, ResNet-50, ImageNet-1K.
_base_ = ['./ce_resnet50_8xb32-100e_in1k.py', '../../_base_/methods/entropy.py']
model = dict(
    head=dict(
        loss=dict(
            _delete_=True,
            type='mmssl.CombinedLoss',
            losses=[dict(type='CrossEntropyLoss'), _base_.entropy_loss])))
