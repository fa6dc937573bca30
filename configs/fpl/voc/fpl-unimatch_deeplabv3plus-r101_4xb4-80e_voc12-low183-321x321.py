# UniMatch + FPL, DeepLabV3+ R-101, VOC 2012 low183.
_base_ = './fpl-unimatch_deeplabv3plus-r50_4xb4-80e_voc12-low183-321x321.py'
model = dict(segmentor=dict(pretrained='open-mmlab://resnet101_v1c', backbone=dict(depth=101)))
