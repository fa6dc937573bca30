# Label smoothing, ResNet-101, ImageNet-1K.
_base_ = './ls_resnet50_8xb32-100e_in1k.py'
model = dict(backbone=dict(depth=101))
