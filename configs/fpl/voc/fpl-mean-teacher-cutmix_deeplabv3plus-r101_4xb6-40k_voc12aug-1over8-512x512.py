# Mean teacher + CutMix + FPL, DeepLabV3+ R-101, VOC 2012 1over8.
_base_ = './fpl-mean-teacher-cutmix_deeplabv3plus-r50_4xb6-40k_voc12aug-1over8-512x512.py'
model = dict(segmentor=dict(pretrained='open-mmlab://resnet101_v1c', backbone=dict(depth=101)))
