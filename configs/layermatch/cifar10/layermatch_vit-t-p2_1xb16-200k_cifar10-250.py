# LayerMatch on CIFAR-10 with 250 labels.
_base_ = [
    './freematch_vit-t-p2_1xb16-200k_cifar10-250.py',
    '../../_base_/methods/layermatch.py',
]
model = dict(semi_train_cfg=dict(fairness_weight=0.))
custom_hooks = [_base_.grad_relu_hook, _base_.ema_head_hook]
