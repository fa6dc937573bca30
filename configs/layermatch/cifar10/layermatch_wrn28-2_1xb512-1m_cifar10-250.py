# LayerMatch on CIFAR-10 with 250 labels.
_base_ = [
    './freematch_wrn28-2_1xb512-1m_cifar10-250.py',
    '../../_base_/methods/layermatch.py',
]
model = dict(semi_train_cfg=dict(fairness_weight=0.))
custom_hooks = [*_base_.custom_hooks, _base_.grad_relu_hook, _base_.ema_head_hook]
