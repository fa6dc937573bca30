# Cityscapes; <data_root>/splits has the lists, each line `image<TAB>label` relative to the root, in CPS's naming
# (tools/datasets/make_splits.py writes them).
data_root = '{{$CITYSCAPES_ROOT:data/cityscapes}}'
crop_size = (800, 800)
load_image = dict(type='LoadImageFromFile')
geometry = [
    dict(type='RandomFlip', prob=0.5),
    dict(
        type='RandomChoice',
        transforms=[[dict(type='Resize', scale_factor=factor, keep_ratio=True)]
                    for factor in (0.5, 0.75, 1.0, 1.5, 1.75, 2.0)]),
    dict(type='RandomCrop', crop_size=crop_size),
]
labeled = dict(
    type='mmssl.CityscapesDataset',
    data_root=data_root,
    ann_file='splits/train_aug_labeled_1-8.txt',
    data_prefix=dict(img_path='', seg_map_path=''),
    pipeline=[load_image, dict(type='LoadAnnotations'), *geometry, dict(type='PackSegInputs')])
train_dataloader = dict(
    batch_size=2,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type='InfiniteSampler', shuffle=True),
    dataset=labeled)
val_dataloader = dict(
    batch_size=1,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='mmssl.CityscapesDataset',
        data_root=data_root,
        ann_file='',
        data_prefix=dict(img_path='leftImg8bit/val', seg_map_path='gtFine/val'),
        # Evaluated at its own size, by windows.
        pipeline=[load_image, dict(type='LoadAnnotations'), dict(type='PackSegInputs')]))
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
