# The AlexNet without batch normalization of ADR's experiments on CIFAR-10. Kaiming's initialization:
# PyTorch's own makes the signal fade from layer to layer, and nothing normalizes it here.
model = dict(
    type='ImageClassifier',
    data_preprocessor=dict(
        type='ClsDataPreprocessor', mean=[125.307, 122.961, 113.8575], std=[51.5865, 50.847, 51.255], to_rgb=True),
    backbone=dict(
        type='mmssl.CIFARAlexNet', init_cfg=dict(type='Kaiming', layer='Conv2d', nonlinearity='relu')),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(type='LinearClsHead', num_classes=10, in_channels=256, loss=dict(type='CrossEntropyLoss')))
