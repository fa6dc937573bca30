# Cross entropy, AlexNet, 10,000 images of CIFAR-10, at CPU size.
_base_ = [
    '../../_base_/models/alexnet_cifar.py',
    '../../_base_/datasets/cifar10_images_10k.py',
    '../../_base_/schedules/cifar10_cpu_1200.py',
    '../../_base_/default_runtime_cls.py',
]
