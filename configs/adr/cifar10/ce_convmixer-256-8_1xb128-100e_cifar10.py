# Cross entropy, ConvMixer-256/8, CIFAR-10.
_base_ = [
    '../../_base_/models/convmixer_cifar.py',
    '../../_base_/datasets/cifar10_supervised.py',
    '../../_base_/schedules/convmixer_cifar10_100e.py',
    '../../_base_/default_runtime_cls.py',
]
