# AEL + FPL, DeepLabV3+ R-101, VOC 2012 1over16.
_base_ = './fpl-ael_deeplabv3plus-r50_8xb4-80e_voc12aug-1over16-513x513.py'
model = dict(segmentor=dict(pretrained='open-mmlab://resnet101_v1c', backbone=dict(depth=101)))
