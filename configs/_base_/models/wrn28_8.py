# WRN-28-8, for CIFAR-100.
_base_ = './wrn28_2.py'
model = dict(
    data_preprocessor=dict(mean=[129.3, 124.1, 112.4], std=[68.2, 65.4, 70.4]),
    backbone=dict(widen_factor=8),
    head=dict(num_classes=100, in_channels=512))
