# WRN-28-2 of the FixMatch family, for 32 x 32 pixels and 10 classes. `image_norm` comes from the data set.
model = dict(
    type='ImageClassifier',
    data_preprocessor=dict(
        type='ClsDataPreprocessor', mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375], to_rgb=True),
    backbone=dict(type='mmssl.WideResNet', depth=28, widen_factor=2),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(
        type='LinearClsHead',
        num_classes=10,
        in_channels=128,
        loss=dict(type='CrossEntropyLoss'),
        init_cfg=dict(type='Xavier', layer='Linear', distribution='normal')))
