# ImageNet-1K with the usual crops and flips.
_base_ = './cls_loaders.py'
data_root = '{{$IMAGENET_ROOT:data/imagenet}}'
train_pipeline = [
    _base_.load_image,
    dict(type='RandomResizedCrop', scale=224, backend='pillow'),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    _base_.pack,
]
test_pipeline = [
    _base_.load_image,
    dict(type='ResizeEdge', scale=256, edge='short', backend='pillow'),
    dict(type='CenterCrop', crop_size=224),
    _base_.pack,
]
train_set = dict(type='ImageNet', data_root=data_root, split='train', pipeline=train_pipeline)
train_dataloader = dict(batch_size=32, dataset=dict(sources=dict(labeled=train_set)))
val_dataloader = dict(
    batch_size=32, dataset=dict(type='ImageNet', data_root=data_root, split='val', pipeline=test_pipeline))
test_dataloader = dict(_base_.val_dataloader, **val_dataloader)
val_evaluator = [dict(type='Accuracy', topk=(1, 5)), dict(type='mmssl.CalibrationError')]
test_evaluator = val_evaluator
