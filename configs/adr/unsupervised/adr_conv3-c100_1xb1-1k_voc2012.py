# Unsupervised segmentation of an image of VOC 2012, with ADR.
_base_ = ['./ce_conv3-c100_1xb1-1k_voc2012.py', '../../_base_/methods/adr_segments.py']
model = dict(regularizer=_base_.adr_segments)
