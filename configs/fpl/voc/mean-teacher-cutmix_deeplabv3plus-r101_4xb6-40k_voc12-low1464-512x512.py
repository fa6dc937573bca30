# Mean teacher + CutMix, DeepLabV3+ R-101, VOC 2012 low1464.
_base_ = './mean-teacher-cutmix_deeplabv3plus-r50_4xb6-40k_voc12-low1464-512x512.py'
model = dict(segmentor=dict(pretrained='open-mmlab://resnet101_v1c', backbone=dict(depth=101)))
