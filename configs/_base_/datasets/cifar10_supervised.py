# CIFAR-10 in its official form (`cifar-10-batches-py` below the root), with all 50,000 labels.
_base_ = './cls_loaders.py'
data_root = '{{$CIFAR10_ROOT:data/cifar10}}'
load = [dict(type='mmssl.ToBGR', source='rgb')]
views = [
    dict(type='mmssl.RandomPadCrop', crop_size=32, padding=4, padding_mode='constant'),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
]
images = dict(type='CIFAR10', data_root=data_root, download=False)
train_set = dict(images, split='train', pipeline=[*load, *views, _base_.pack])
train_dataloader = dict(batch_size=128, dataset=dict(sources=dict(labeled=train_set)))
val_dataloader = dict(dataset=dict(images, split='test', test_mode=True, pipeline=[*load, _base_.pack]))
test_dataloader = dict(_base_.val_dataloader, **val_dataloader)
val_evaluator = [dict(type='Accuracy', topk=(1, 5)), dict(type='mmssl.CalibrationError')]
test_evaluator = val_evaluator
