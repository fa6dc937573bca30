# FreeMatch + Avg-Clustering on MNIST with 10 labels, at CPU size.
_base_ = [
    './freematch_wrn10-2_cpu-1k_mnist-10.py',
    '../../_base_/methods/layermatch.py',
]
custom_hooks = [*_base_.custom_hooks, dict(_base_.ema_head_hook, reset_interval=10)]
