# LayerMatch on CIFAR-100 with 400 labels.
_base_ = [
    './freematch_vit-s-p2_1xb16-200k_cifar100-400.py',
    '../../_base_/methods/layermatch.py',
]
model = dict(semi_train_cfg=dict(fairness_weight=0.))
custom_hooks = [_base_.grad_relu_hook, _base_.ema_head_hook]
