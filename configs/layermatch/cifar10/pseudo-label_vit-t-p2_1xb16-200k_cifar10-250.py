# PseudoLabel on CIFAR-10 with 250 labels.
_base_ = [
    './fixmatch_vit-t-p2_1xb16-200k_cifar10-250.py',
    '../../_base_/methods/pseudo_label.py',
]
model = dict(semi_train_cfg=dict(_delete_=True, **_base_.pseudo_label, unsup_ramp=81920))
