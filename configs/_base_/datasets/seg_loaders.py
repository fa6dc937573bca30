# What the data sets here share: how images are loaded, in which batches, and what is measured. Crops, data sets and
# lists are theirs.
load_image = dict(type='LoadImageFromFile')
geometry = [
    dict(type='RandomFlip', prob=0.5),
    dict(
        type='RandomChoice',
        transforms=[[dict(type='Resize', scale_factor=factor, keep_ratio=True)]
                    for factor in (0.5, 0.75, 1.0, 1.5, 1.75, 2.0)]),
]
train_dataloader = dict(
    batch_size=2, num_workers=4, persistent_workers=True, sampler=dict(type='InfiniteSampler', shuffle=True))
val_dataloader = dict(
    batch_size=1, num_workers=4, persistent_workers=True, sampler=dict(type='DefaultSampler', shuffle=False))
test_dataloader = val_dataloader
val_evaluator = dict(type='IoUMetric', iou_metrics=['mIoU'])
test_evaluator = val_evaluator
# Of `tools/test.py --tta`: the mean over scales and mirror images.
tta_pipeline = [
    load_image,
    dict(
        type='TestTimeAug',
        transforms=[
            [dict(type='Resize', scale_factor=factor, keep_ratio=True) for factor in (0.5, 0.75, 1.0, 1.25, 1.5, 1.75)],
            [dict(type='RandomFlip', prob=prob, direction='horizontal') for prob in (0., 1.)],
            [dict(type='LoadAnnotations')],
            [dict(type='PackSegInputs')],
        ]),
]
