# Cross entropy, ViT-B/16, ImageNet-1K.
_base_ = [
    '../../_base_/models/vit_b16.py',
    '../../_base_/datasets/imagenet_deit.py',
    '../../_base_/schedules/deit_300e.py',
    '../../_base_/default_runtime_cls.py',
]
model = dict(head=dict(loss=dict(use_soft=True)))
