# SoftMatch on CIFAR-100 with 10,000 labels.
_base_ = [
    './fixmatch_wrn28-8_1xb512-1m_cifar100-10000.py',
    '../../_base_/methods/softmatch.py',
]
model = dict(semi_train_cfg=dict(_delete_=True, **_base_.softmatch))
