# AdaMatch on CIFAR-100 with 2,500 labels.
_base_ = [
    './fixmatch_wrn28-8_1xb512-1m_cifar100-2500.py',
    '../../_base_/methods/adamatch.py',
]
model = dict(semi_train_cfg=dict(_delete_=True, **_base_.adamatch))
