# PASCAL VOC 2012 in mmseg's folder layout; SegmentationClassAug must hold the masks of all 10,582 training images.
# The lists lie in <data_root>/splits, in CPS's naming (tools/datasets/make_splits.py writes them).
data_root = '{{$VOC_ROOT:data/VOCdevkit/VOC2012}}'
crop_size = (512, 512)
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
    type='mmssl.VOCDataset',
    data_root=data_root,
    ann_file='splits/train_aug_labeled_1-8.txt',
    data_prefix=dict(img_path='JPEGImages', seg_map_path='SegmentationClassAug'),
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
        type='mmssl.VOCDataset',
        data_root=data_root,
        ann_file='ImageSets/Segmentation/val.txt',
        data_prefix=dict(img_path='JPEGImages', seg_map_path='SegmentationClass'),
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
