# Dash on CIFAR-100 with 400 labels.
_base_ = [
    './fixmatch_wrn28-8_1xb512-1m_cifar100-400.py',
    '../../_base_/methods/dash.py',
]
model = dict(semi_train_cfg=dict(_delete_=True, **_base_.dash))
