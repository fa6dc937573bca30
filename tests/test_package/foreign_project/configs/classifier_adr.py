# A stock classifier, whose head takes one loss: cross entropy and ADR in it. The folders of the images are its classes.
_base_ = './_base_/schedules/schedule_2.py'
default_scope = 'mmpretrain'
default_hooks = dict(visualization=dict(type='VisualizationHook', enable=False))
log_processor = dict(by_epoch=False)
pipeline = [dict(type='LoadImageFromFile'), dict(type='Resize', scale=(32, 32)), dict(type='PackInputs')]
data_preprocessor = dict(num_classes=2, mean=[127.5] * 3, std=[60.] * 3)
model = dict(
    type='ImageClassifier',
    backbone=dict(type='MobileNetV2', widen_factor=0.1),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(
        type='LinearClsHead',
        num_classes=2,
        in_channels=1280,
        topk=(1, ),
        loss=dict(
            type='mmssl.CombinedLoss',
            losses=[dict(type='CrossEntropyLoss'), dict(type='mmssl.ADRLoss', topk=1, loss_weight=0.05)])))
train_dataloader = dict(
    batch_size=4,
    num_workers=0,
    sampler=dict(type='InfiniteSampler', shuffle=True),
    dataset=dict(type='CustomDataset', data_root='data/img_dir', pipeline=pipeline))
val_dataloader = dict(
    batch_size=4,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(type='CustomDataset', data_root='data/img_dir', pipeline=pipeline))
test_dataloader = val_dataloader
val_evaluator = dict(type='Accuracy', topk=(1, ))
test_evaluator = val_evaluator
