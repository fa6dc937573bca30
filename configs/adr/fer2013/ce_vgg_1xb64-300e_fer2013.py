# Cross entropy, VGG, FER2013.
_base_ = [
    '../../_base_/models/vgg_fer.py',
    '../../_base_/datasets/fer2013.py',
    '../../_base_/schedules/fer2013_300e.py',
    '../../_base_/default_runtime_cls.py',
]
