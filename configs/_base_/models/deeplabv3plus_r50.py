# DeepLabV3+ at output stride 16 as CPS uses it (layer4 with stride 1 and dilations 2, 4, 8), in stock mmseg parts.
norm_cfg = dict(type='SyncBN', requires_grad=True)
data_preprocessor = dict(
    type='SegDataPreProcessor',
    mean=[123.675, 116.28, 103.53],
    std=[58.395, 57.12, 57.375],
    bgr_to_rgb=True,
    pad_val=0,
    seg_pad_val=255,
    size=(512, 512))
model = dict(
    type='EncoderDecoder',
    data_preprocessor=data_preprocessor,
    pretrained='open-mmlab://resnet50_v1c',
    backbone=dict(
        type='ResNetV1c',
        depth=50,
        num_stages=4,
        out_indices=(0, 1, 2, 3),
        strides=(1, 2, 2, 1),
        dilations=(1, 1, 1, 2),
        multi_grid=(2, 4, 8),
        norm_cfg=norm_cfg,
        norm_eval=False,
        style='pytorch'),
    decode_head=dict(
        type='DepthwiseSeparableASPPHead',
        in_channels=2048,
        in_index=3,
        channels=256,
        dilations=(1, 6, 12, 18),
        c1_in_channels=256,
        c1_channels=48,
        dropout_ratio=0,
        num_classes=21,
        norm_cfg=norm_cfg,
        align_corners=True,
        loss_decode=dict(type='CrossEntropyLoss', avg_non_ignore=True)),
    train_cfg=dict(),
    # Stride 2/3 of the crop, rounded up.
    test_cfg=dict(mode='slide', crop_size=(512, 512), stride=(342, 342)))
