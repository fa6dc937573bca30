# WRN-37-2, for the 96 x 96 pixels of STL-10.
_base_ = './wrn28_2.py'
model = dict(
    data_preprocessor=dict(mean=[112.4, 109.1, 98.6], std=[68.4, 66.6, 68.5]),
    backbone=dict(depth=37, strides=(2, 2, 2, 2)),
    head=dict(in_channels=256))
