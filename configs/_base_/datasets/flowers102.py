# Flowers-102: 2,040 images to learn from (train and val of the official split), 6,149 test images.
_base_ = './cls_loaders.py'
data_root = '{{$FLOWERS102_ROOT:data/flowers102}}'
resize = dict(type='Resize', scale=(256, 256))
train_pipeline = [
    _base_.load_image,
    resize,
    dict(type='RandomCrop', crop_size=224),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    _base_.pack,
]
test_pipeline = [_base_.load_image, resize, dict(type='CenterCrop', crop_size=224), _base_.pack]
train_set = dict(type='Flowers102', data_root=data_root, split='trainval', pipeline=train_pipeline)
train_dataloader = dict(batch_size=64, dataset=dict(sources=dict(labeled=train_set)))
val_dataloader = dict(
    batch_size=64, dataset=dict(type='Flowers102', data_root=data_root, split='test', pipeline=test_pipeline))
test_dataloader = dict(_base_.val_dataloader, **val_dataloader)
val_evaluator = [dict(type='Accuracy', topk=(1, 5)), dict(type='mmssl.CalibrationError')]
test_evaluator = val_evaluator
