# Self-adaptive threshold + Grad-ReLU on MNIST with 40 labels, at CPU size.
_base_ = [
    './freematch_wrn10-2_cpu-1k_mnist-40.py',
    '../../_base_/methods/layermatch.py',
]
model = dict(semi_train_cfg=dict(fairness_weight=0.))
custom_hooks = [*_base_.custom_hooks, _base_.grad_relu_hook]
