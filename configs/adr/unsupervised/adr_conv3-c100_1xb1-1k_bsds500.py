# Unsupervised segmentation of an image of BSDS500, with ADR.
_base_ = ['./ce_conv3-c100_1xb1-1k_bsds500.py', '../../_base_/methods/adr_segments.py']
model = dict(regularizer=_base_.adr_segments)
