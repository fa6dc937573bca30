# LayerMatch with N = 1 on CIFAR-10 with 10 labels.
_base_ = [
    './freematch_vit-t-p2_1xb16-200k_cifar10-10.py',
    '../../_base_/methods/layermatch.py',
]
model = dict(semi_train_cfg=dict(fairness_weight=0.))
custom_hooks = [_base_.grad_relu_hook, dict(_base_.ema_head_hook, reset_interval=1)]
