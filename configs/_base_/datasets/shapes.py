# Shapes over textures, made by tools/demo/make_shapes.py: 6 labeled and 194 unlabeled images of 96 x 96 pixels.
data_root = '{{$SHAPES_ROOT:work_dirs/demo/synthetic/data}}'
crop_size = (96, 96)
metainfo = dict(
    classes=('background', 'disk', 'ring', 'square', 'triangle', 'cross'),
    palette=[[70, 70, 70], [230, 80, 60], [250, 190, 40], [60, 140, 230], [90, 190, 90], [180, 90, 200]])
load_image = dict(type='LoadImageFromFile')
geometry = [
    dict(type='RandomFlip', prob=0.5),
    dict(type='RandomFlip', prob=0.5, direction='vertical'),
]
train_dataloader = dict(
    batch_size=4,
    num_workers=1,
    persistent_workers=True,
    sampler=dict(type='InfiniteSampler', shuffle=True),
    dataset=dict(
        type='mmssl.SplitSegDataset',
        data_root=data_root,
        metainfo=metainfo,
        img_suffix='.png',
        ann_file='splits/labeled.txt',
        data_prefix=dict(img_path='img_dir/train', seg_map_path='ann_dir/train'),
        pipeline=[load_image, dict(type='LoadAnnotations'), *geometry, dict(type='PackSegInputs')]))
val_dataloader = dict(
    batch_size=8,
    num_workers=1,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='mmssl.SplitSegDataset',
        data_root=data_root,
        metainfo=metainfo,
        img_suffix='.png',
        data_prefix=dict(img_path='img_dir/val', seg_map_path='ann_dir/val'),
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
            [dict(type='Resize', scale_factor=factor, keep_ratio=True) for factor in (0.75, 1.0, 1.25)],
            [dict(type='RandomFlip', prob=prob, direction='horizontal') for prob in (0., 1.)],
            [dict(type='LoadAnnotations')],
            [dict(type='PackSegInputs')],
        ]),
]
