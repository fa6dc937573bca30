# ViT-B/16 as DeiT trains it, 1,000 classes.
model = dict(
    type='ImageClassifier',
    data_preprocessor=dict(
        type='ClsDataPreprocessor',
        num_classes=1000,
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        to_rgb=True),
    backbone=dict(type='VisionTransformer', arch='deit-base', img_size=224, patch_size=16, drop_path_rate=0.1),
    neck=None,
    head=dict(
        type='VisionTransformerClsHead', num_classes=1000, in_channels=768, loss=dict(type='CrossEntropyLoss')),
    init_cfg=[
        dict(type='TruncNormal', layer='Linear', std=0.02),
        dict(type='Constant', layer='LayerNorm', val=1.0, bias=0.0),
    ],
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.8), dict(type='CutMix', alpha=1.0)]))
