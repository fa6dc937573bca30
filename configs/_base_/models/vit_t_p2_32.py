# ViT-T with patches of 2 x 2 for 32 x 32 pixels and 10 classes. For pre-trained weights set
# `model.backbone.init_cfg=dict(type='Pretrained', checkpoint=..., prefix='backbone.')`.
model = dict(
    type='ImageClassifier',
    data_preprocessor=dict(
        type='ClsDataPreprocessor', mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375], to_rgb=True),
    backbone=dict(
        type='VisionTransformer',
        arch='deit-tiny',
        img_size=32,
        patch_size=2,
        drop_rate=0.,
        drop_path_rate=0.1,
        norm_cfg=dict(type='LN', eps=1e-6),
        out_type='cls_token'),
    head=dict(type='LinearClsHead', num_classes=10, in_channels=192, loss=dict(type='CrossEntropyLoss')))
