# AEL, DeepLabV3+ R-101, Cityscapes 1over30.
_base_ = './ael_deeplabv3plus-r50_8xb4-200e_cityscapes-1over30-769x769.py'
model = dict(segmentor=dict(pretrained='open-mmlab://resnet101_v1c', backbone=dict(depth=101)))
