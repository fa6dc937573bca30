# LayerMatch on CIFAR-100 with 2,500 labels.
_base_ = [
    './freematch_wrn28-8_1xb512-1m_cifar100-2500.py',
    '../../_base_/methods/layermatch.py',
]
model = dict(semi_train_cfg=dict(fairness_weight=0.))
custom_hooks = [*_base_.custom_hooks, _base_.grad_relu_hook, _base_.ema_head_hook]
