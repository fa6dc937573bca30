# Entropy penalty, ConvMixer-256/8, CIFAR-10.
_base_ = ['./ce_convmixer-256-8_1xb128-100e_cifar10.py', '../../_base_/methods/entropy.py']
model = dict(
    head=dict(
        loss=dict(
            _delete_=True,
            type='mmssl.CombinedLoss',
            losses=[dict(type='CrossEntropyLoss'), _base_.entropy_loss])))
