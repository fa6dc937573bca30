# Cross entropy, ResNet-50, Flowers-102.
_base_ = [
    '../../_base_/models/resnet50_cls.py',
    '../../_base_/datasets/flowers102.py',
    '../../_base_/schedules/flowers102_100e.py',
    '../../_base_/default_runtime_cls.py',
]
model = dict(
    backbone=dict(
        init_cfg=dict(
            type='Pretrained',
            checkpoint='https://download.openmmlab.com/mmclassification/v0/resnet/resnet50_8xb32_in1k_20210831-'
            'ea4938fc.pth',
            prefix='backbone')),
    head=dict(num_classes=102))
