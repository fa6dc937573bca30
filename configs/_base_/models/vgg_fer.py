# The VGG of Khaireddin and Chen (2021) for faces of 48 x 48 pixels: four stages of two convolutions, three linear
# layers. Gray pictures come as three equal channels.
model = dict(
    type='ImageClassifier',
    data_preprocessor=dict(type='ClsDataPreprocessor', mean=[127.5] * 3, std=[63.75] * 3),
    backbone=dict(
        type='VGG', depth=13, num_stages=4, dilations=(1, 1, 1, 1), out_indices=(3, ), norm_cfg=dict(type='BN')),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(
        type='StackedLinearClsHead',
        num_classes=7,
        in_channels=512,
        mid_channels=[4096, 4096],
        dropout_rate=0.2,
        act_cfg=dict(type='ReLU'),
        loss=dict(type='CrossEntropyLoss')))
