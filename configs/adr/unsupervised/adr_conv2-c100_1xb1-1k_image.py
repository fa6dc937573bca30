# Unsupervised segmentation of one image, with ADR.
_base_ = ['./ce_conv2-c100_1xb1-1k_image.py', '../../_base_/methods/adr_segments.py']
model = dict(regularizer=_base_.adr_segments)
