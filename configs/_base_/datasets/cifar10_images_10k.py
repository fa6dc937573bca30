# CIFAR-10 as image files, `train/<class>/*` and `test/<class>/*` below the root: 1,000 training images of each class to
# learn from, evaluated on all test images.
_base_ = './cls_loaders.py'
data_root = '{{$CIFAR10_ROOT:data/cifar10}}'
# On two cores the workers take time from training: each image is decoded once.
load = dict(type='mmssl.Cached', transforms=[_base_.load_image])
views = [
    dict(type='mmssl.RandomPadCrop', crop_size=32, padding=4, padding_mode='constant'),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
]
train_set = dict(
    type='mmssl.LabeledSubset',
    per_class=1000,
    seed=0,
    dataset=dict(
        type='CustomDataset',
        data_root=data_root,
        data_prefix='train',
        pipeline=[load, *views, _base_.pack]))
# Images of the same folder that are no part of the above, to choose settings on: for val_dataloader.dataset.
held_out_set = dict(
    type='mmssl.LabeledSubset',
    per_class=500,
    seed=0,
    skip=1000,
    dataset=dict(type='CustomDataset', data_root=data_root, data_prefix='train', pipeline=[load, _base_.pack]))
train_dataloader = dict(batch_size=64, num_workers=1, dataset=dict(sources=dict(labeled=train_set)))
val_dataloader = dict(
    num_workers=1,
    dataset=dict(type='CustomDataset', data_root=data_root, data_prefix='test', pipeline=[load, _base_.pack]))
test_dataloader = dict(_base_.val_dataloader, **val_dataloader)
val_evaluator = [dict(type='Accuracy', topk=(1, 5)), dict(type='mmssl.CalibrationError')]
test_evaluator = val_evaluator
