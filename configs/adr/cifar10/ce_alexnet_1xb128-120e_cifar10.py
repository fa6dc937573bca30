# Cross entropy, AlexNet, CIFAR-10.
_base_ = [
    '../../_base_/models/alexnet_cifar.py',
    '../../_base_/datasets/cifar10_supervised.py',
    '../../_base_/schedules/cifar10_120e.py',
    '../../_base_/default_runtime_cls.py',
]
