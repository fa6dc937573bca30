# AdaMatch on CIFAR-10 with 4,000 labels.
_base_ = [
    './fixmatch_wrn28-2_1xb512-1m_cifar10-4000.py',
    '../../_base_/methods/adamatch.py',
]
model = dict(semi_train_cfg=dict(_delete_=True, **_base_.adamatch))
