# Own images: `train/<class>/*` and `val/<class>/*` below the root, all of them labeled; `unlabeled/*` is for
# class_folders_semi.py. In training all images of `train` are used.
_base_ = ['./cls_loaders.py', '../methods/randaugment.py']
data_root = '{{$OWN_IMAGES_ROOT:data/own}}'
image_norm = dict(mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375], to_rgb=True)
load = [_base_.load_image]
resize = dict(type='Resize', scale=(256, 256), keep_ratio=False)
flip = dict(type='RandomFlip', prob=0.5, direction='horizontal')
weak = [resize, dict(type='RandomCrop', crop_size=224), flip]
# A square of 0 to half of the image, as in views_32.py.
strong = [
    dict(type='RandomResizedCrop', scale=224),
    flip,
    _base_.randaugment,
    dict(type='Cutout', magnitude_range=(1, 113), magnitude_std='inf', prob=1., pad_val=(114, 123, 125)),
]
labeled = dict(
    type='CustomDataset', data_root=data_root, data_prefix='train', pipeline=[*load, *weak, _base_.pack])
train_dataloader = dict(dataset=dict(sources=dict(labeled=labeled)))
val_dataloader = dict(
    batch_size=64,
    dataset=dict(
        type='CustomDataset',
        data_root=data_root,
        data_prefix='val',
        pipeline=[*load, resize, dict(type='CenterCrop', crop_size=224), _base_.pack]))
test_dataloader = dict(_base_.val_dataloader, **val_dataloader)
