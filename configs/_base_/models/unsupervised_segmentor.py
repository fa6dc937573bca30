# The network of Kim et al. (2020) that learns to segment one image, as in the released code; see
# docs/unsupervised_segmentation.md.
model = dict(
    type='mmssl.UnsupervisedSegmentor', num_labels=100, channels=100, num_convs=2, continuity_weight=1.0)
