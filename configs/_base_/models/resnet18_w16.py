# A student small enough for two CPU cores: ResNet-18 of a quarter of the width (0.78 M parameters), output stride 16.
norm_cfg = dict(type='BN', requires_grad=True)
data_preprocessor = dict(
    type='SegDataPreProcessor',
    mean=[123.675, 116.28, 103.53],
    std=[58.395, 57.12, 57.375],
    bgr_to_rgb=True,
    pad_val=0,
    seg_pad_val=255,
    size=(112, 112))
model = dict(
    type='EncoderDecoder',
    data_preprocessor=data_preprocessor,
    backbone=dict(
        type='ResNetV1c',
        depth=18,
        stem_channels=16,
        base_channels=16,
        num_stages=4,
        out_indices=(0, 1, 2, 3),
        strides=(1, 2, 2, 1),
        dilations=(1, 1, 1, 2),
        norm_cfg=norm_cfg,
        norm_eval=False,
        style='pytorch'),
    decode_head=dict(
        type='DepthwiseSeparableASPPHead',
        in_channels=128,
        in_index=3,
        channels=32,
        dilations=(1, 6, 12, 18),
        c1_in_channels=16,
        c1_channels=8,
        dropout_ratio=0.1,
        num_classes=11,
        norm_cfg=norm_cfg,
        align_corners=False,
        loss_decode=dict(type='CrossEntropyLoss', avg_non_ignore=True)),
    train_cfg=dict(),
    test_cfg=dict(mode='whole'))
