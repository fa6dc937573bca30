# Mean teacher + CutMix, DeepLabV3+ R-101, Cityscapes 1over16.
_base_ = './mean-teacher-cutmix_deeplabv3plus-r50_4xb6-40k_cityscapes-1over16-800x800.py'
model = dict(segmentor=dict(pretrained='open-mmlab://resnet101_v1c', backbone=dict(depth=101)))
