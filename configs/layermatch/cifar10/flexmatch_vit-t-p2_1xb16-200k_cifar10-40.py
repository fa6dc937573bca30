# FlexMatch on CIFAR-10 with 40 labels.
_base_ = [
    './fixmatch_vit-t-p2_1xb16-200k_cifar10-40.py',
    '../../_base_/methods/flexmatch.py',
]
model = dict(semi_train_cfg=dict(_delete_=True, **_base_.flexmatch))
custom_hooks = [_base_.flexmatch_hook]
