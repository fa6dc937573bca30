# Labeled and unlabeled images with the loader pieces of mmssl. Plain, so that both styles of config take it.
data_root = 'data'
branches = ['sup', 'unsup_weak', 'unsup_strong']
load = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations')]
pack = [dict(type='PackSegInputs')]
views = [dict(type='RandomCrop', crop_size=(32, 32)), dict(type='RandomFlip', prob=0.5)]
labeled = dict(
    type='OwnDataset',
    data_root=data_root,
    ann_file='splits/labeled.txt',
    data_prefix=dict(img_path='img_dir/train', seg_map_path='ann_dir/train'),
    pipeline=[*load, *views, dict(type='mmssl.MultiBranch', branches=branches, sup=pack)])
unlabeled = dict(
    type='mmssl.UnlabeledImageDataset',
    data_root=data_root,
    ann_file='splits/unlabeled.txt',
    img_path='img_dir/train',
    seg_map_path='ann_dir/train',  # for FPLDiagnosticsHook
    pipeline=[
        *load, *views,
        dict(
            type='mmssl.MultiBranch',
            branches=branches,
            unsup_weak=pack,
            unsup_strong=[dict(type='PhotoMetricDistortion'), *pack])
    ])
train_dataloader = dict(
    batch_size=4,
    num_workers=0,
    sampler=dict(type='mmssl.MultiSourceSampler', source_ratio=[1, 1]),
    dataset=dict(type='mmssl.MultiSourceDataset', sources=dict(labeled=labeled, unlabeled=unlabeled)))
val_dataloader = dict(
    batch_size=1,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='OwnDataset',
        data_root=data_root,
        data_prefix=dict(img_path='img_dir/val', seg_map_path='ann_dir/val'),
        pipeline=[*load, *pack]))
test_dataloader = val_dataloader
val_evaluator = dict(type='IoUMetric', iou_metrics=['mIoU'])
test_evaluator = val_evaluator
