# Self-adaptive threshold + Avg-Clustering on CIFAR-10 with 40 labels, at CPU size.
_base_ = [
    './freematch_wrn10-2_cpu-1k_cifar10-40.py',
    '../../_base_/methods/layermatch.py',
]
model = dict(semi_train_cfg=dict(fairness_weight=0.))
custom_hooks = [*_base_.custom_hooks, dict(_base_.ema_head_hook, reset_interval=10)]
