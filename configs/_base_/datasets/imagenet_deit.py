# ImageNet-1K with the augmentation of DeiT; mixing of images is the model's.
_base_ = './imagenet.py'
bgr_mean, bgr_std = [103.53, 116.28, 123.675], [57.375, 57.12, 58.395]
bicubic = dict(backend='pillow', interpolation='bicubic')
train_pipeline = [
    _base_.load_image,
    dict(type='RandomResizedCrop', scale=224, **bicubic),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    dict(
        type='RandAugment',
        policies='timm_increasing',
        num_policies=2,
        total_level=10,
        magnitude_level=9,
        magnitude_std=0.5,
        hparams=dict(pad_val=[104, 116, 124], interpolation='bicubic')),
    dict(
        type='RandomErasing',
        erase_prob=0.25,
        mode='rand',
        min_area_ratio=0.02,
        max_area_ratio=1 / 3,
        fill_color=bgr_mean,
        fill_std=bgr_std),
    _base_.pack,
]
test_pipeline = [
    _base_.load_image,
    dict(type='ResizeEdge', scale=256, edge='short', **bicubic),
    dict(type='CenterCrop', crop_size=224),
    _base_.pack,
]
train_dataloader = dict(batch_size=128, dataset=dict(sources=dict(labeled=dict(pipeline=train_pipeline))))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
