# Supervised baseline of `make demo`.
_base_ = [
    '../_base_/models/resnet18_w16.py',
    '../_base_/datasets/shapes.py',
    '../_base_/schedules/demo_400.py',
    '../_base_/default_runtime.py',
]
model = dict(data_preprocessor=dict(size=_base_.crop_size), decode_head=dict(num_classes=6))
