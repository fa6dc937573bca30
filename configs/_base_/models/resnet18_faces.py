# ResNet-18 with an embedding of 512 numbers and a linear classifier of the 10,572 people of CASIA-WebFace.
model = dict(
    type='ImageClassifier',
    data_preprocessor=dict(
        type='ClsDataPreprocessor', num_classes=10572, mean=[127.5] * 3, std=[128.] * 3, to_rgb=True),
    backbone=dict(type='ResNet', depth=18),
    neck=dict(
        type='LinearNeck', in_channels=512, out_channels=512, gap_dim=2, norm_cfg=dict(type='BN1d'), act_cfg=None),
    head=dict(type='LinearClsHead', num_classes=10572, in_channels=512, loss=dict(type='CrossEntropyLoss')))
