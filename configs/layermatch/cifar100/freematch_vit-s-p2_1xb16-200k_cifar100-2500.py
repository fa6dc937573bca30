# FreeMatch on CIFAR-100 with 2,500 labels.
_base_ = [
    './fixmatch_vit-s-p2_1xb16-200k_cifar100-2500.py',
    '../../_base_/methods/freematch.py',
]
model = dict(semi_train_cfg=dict(_delete_=True, **_base_.freematch))
