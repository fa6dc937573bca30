# Cross entropy, ResNet-50, ImageNet-1K.
_base_ = [
    '../../_base_/models/resnet50_cls.py',
    '../../_base_/datasets/imagenet.py',
    '../../_base_/schedules/imagenet_100e.py',
    '../../_base_/default_runtime_cls.py',
]
model = dict(head=dict(num_classes=1000))
