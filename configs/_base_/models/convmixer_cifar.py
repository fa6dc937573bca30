# ConvMixer-256/8 for 32 x 32 pixels: patches of 2 x 2, kernels of 5 x 5.
model = dict(
    type='ImageClassifier',
    data_preprocessor=dict(
        type='ClsDataPreprocessor', mean=[125.307, 122.961, 113.8575], std=[51.5865, 50.847, 51.255], to_rgb=True),
    backbone=dict(type='ConvMixer', arch=dict(embed_dims=256, depth=8, patch_size=2, kernel_size=5)),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(type='LinearClsHead', num_classes=10, in_channels=256, loss=dict(type='CrossEntropyLoss')))
