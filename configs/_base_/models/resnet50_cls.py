# ResNet-50 for 224 x 224 pixels and the 100 classes of ImageNet-100.
model = dict(
    type='ImageClassifier',
    data_preprocessor=dict(
        type='ClsDataPreprocessor', mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375], to_rgb=True),
    backbone=dict(type='ResNet', depth=50, style='pytorch'),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(type='LinearClsHead', num_classes=100, in_channels=2048, loss=dict(type='CrossEntropyLoss')))
