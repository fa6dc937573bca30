# UniMatch + FPL, DeepLabV3+ R-101, Cityscapes 1over4.
_base_ = './fpl-unimatch_deeplabv3plus-r50_4xb4-240e_cityscapes-1over4-769x769.py'
model = dict(segmentor=dict(pretrained='open-mmlab://resnet101_v1c', backbone=dict(depth=101)))
