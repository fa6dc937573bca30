# UDA on CIFAR-100 with 400 labels.
_base_ = [
    './fixmatch_vit-s-p2_1xb16-200k_cifar100-400.py',
    '../../_base_/methods/uda.py',
]
model = dict(semi_train_cfg=dict(_delete_=True, **_base_.uda))
