# Supervised baseline, DeepLabV3+ R-101, Cityscapes 1over2.
_base_ = './supervised_deeplabv3plus-r50_4xb2-40k_cityscapes-1over2-800x800.py'
model = dict(pretrained='open-mmlab://resnet101_v1c', backbone=dict(depth=101))
