# ResNet-18 for 32 x 32 pixels: a 3 x 3 stem that keeps the size, no pooling after it, 512 features. `image_norm` comes
# from the data set.
model = dict(
    type='ImageClassifier',
    data_preprocessor=dict(type='ClsDataPreprocessor', mean=[127.5] * 3, std=[127.5] * 3, to_rgb=True),
    backbone=dict(type='ResNet_CIFAR', depth=18),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(type='LinearClsHead', num_classes=10, in_channels=512, loss=dict(type='CrossEntropyLoss')))
