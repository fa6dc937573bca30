# FreeMatch on CIFAR-10 with 40 labels.
_base_ = [
    './fixmatch_wrn28-2_1xb512-1m_cifar10-40.py',
    '../../_base_/methods/freematch.py',
]
model = dict(semi_train_cfg=dict(_delete_=True, **_base_.freematch))
