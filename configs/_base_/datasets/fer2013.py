# FER2013: 28,709 gray faces of 48 x 48 pixels to learn from, 3,589 for validation (PublicTest), 3,589 for the test
# (PrivateTest). The root holds fer2013.csv.
_base_ = './cls_loaders.py'
data_root = '{{$FER2013_ROOT:data/fer2013}}'
train_pipeline = [
    dict(type='RandomResizedCrop', scale=48, crop_ratio_range=(0.8, 1.0)),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    dict(type='RandomCrop', crop_size=40),
    _base_.pack,
]
test_pipeline = [dict(type='CenterCrop', crop_size=40), _base_.pack]
train_set = dict(type='mmssl.FER2013Dataset', data_root=data_root, split='train', pipeline=train_pipeline)
train_dataloader = dict(batch_size=64, dataset=dict(sources=dict(labeled=train_set)))
val_dataloader = dict(
    dataset=dict(type='mmssl.FER2013Dataset', data_root=data_root, split='val', pipeline=test_pipeline))
test_dataloader = dict(
    _base_.val_dataloader,
    dataset=dict(type='mmssl.FER2013Dataset', data_root=data_root, split='test', pipeline=test_pipeline))
val_evaluator = [dict(type='Accuracy', topk=(1, )), dict(type='mmssl.CalibrationError')]
test_evaluator = val_evaluator
