# Unsupervised segmentation of an image of BSDS500, with the network and continuity of its experiments.
_base_ = [
    '../../_base_/models/unsupervised_segmentor.py',
    '../../_base_/datasets/bsds500_segments.py',
    '../../_base_/schedules/unsupervised_1k.py',
    '../../_base_/default_runtime_unsupervised.py',
]
model = dict(num_convs=3, continuity_weight=5.0)
