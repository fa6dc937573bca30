# FixMatch + Grad-ReLU on CIFAR-10 with 10 labels.
_base_ = [
    './fixmatch_vit-t-p2_1xb16-200k_cifar10-10.py',
    '../../_base_/methods/layermatch.py',
]
custom_hooks = [_base_.grad_relu_hook]
