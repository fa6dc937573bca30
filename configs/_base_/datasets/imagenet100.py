# 100 classes of ImageNet, whose folders a list names, one in each line (no such list is published with the method); 100
# labeled images of each class alone, 16 in a batch.
_base_ = ['./cls_loaders.py', '../methods/randaugment.py']
data_root = '{{$IMAGENET_ROOT:data/imagenet}}'
class_list = '{{$IMAGENET100_CLASSES:imagenet100.txt}}'
image_norm = dict(mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375], to_rgb=True)
load = [_base_.load_image]
# 224 / 0.875, square, without keeping the shape.
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
train_set = dict(type='mmssl.ClassFolderDataset', data_root=data_root, data_prefix='train', class_list=class_list)
labeled = dict(
    type='mmssl.LabeledSubset',
    per_class=100,
    seed=0,
    dataset=dict(train_set, pipeline=[*load, *weak, _base_.pack]))
train_dataloader = dict(batch_size=16, num_workers=8, dataset=dict(sources=dict(labeled=labeled)))
val_dataloader = dict(
    batch_size=64,
    num_workers=8,
    dataset=dict(
        train_set, data_prefix='val', pipeline=[*load, resize, dict(type='CenterCrop', crop_size=224), _base_.pack]))
test_dataloader = dict(_base_.val_dataloader, **val_dataloader)
val_evaluator = dict(topk=(1, 5))
test_evaluator = val_evaluator
