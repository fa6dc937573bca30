# AEL, DeepLabV3+ R-101, VOC 2012 1over2.
_base_ = './ael_deeplabv3plus-r50_8xb4-80e_voc12aug-1over2-513x513.py'
model = dict(segmentor=dict(pretrained='open-mmlab://resnet101_v1c', backbone=dict(depth=101)))
