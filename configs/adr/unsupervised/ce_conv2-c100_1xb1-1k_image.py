# Unsupervised segmentation of the image that the environment variable IMAGE names (Kim et al., 2020).
_base_ = [
    '../../_base_/models/unsupervised_segmentor.py',
    '../../_base_/datasets/one_image.py',
    '../../_base_/schedules/unsupervised_1k.py',
    '../../_base_/default_runtime_unsupervised.py',
]
