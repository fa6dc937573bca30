# Mean teacher + CutMix + FPL, DeepLabV3+ R-101, Cityscapes 1over30.
_base_ = './fpl-mean-teacher-cutmix_deeplabv3plus-r50_4xb6-40k_cityscapes-1over30-800x800.py'
model = dict(segmentor=dict(pretrained='open-mmlab://resnet101_v1c', backbone=dict(depth=101)))
