# No default scope: every stock type carries its prefix, or the node that builds it the scope.
custom_imports = dict(imports=['own_project'], allow_failed_imports=False)
data_root = 'data'
branches = ['sup', 'unsup_weak']
load = [dict(type='mmcv.LoadImageFromFile'), dict(type='mmseg.LoadAnnotations')]
crop = dict(type='mmseg.RandomCrop', crop_size=(32, 32))
pack = dict(type='mmseg.PackSegInputs')
labeled = dict(
    type='mmseg.OwnDataset',
    data_root=data_root,
    ann_file='splits/labeled.txt',
    data_prefix=dict(img_path='img_dir/train', seg_map_path='ann_dir/train'),
    pipeline=[*load, crop, dict(type='mmssl.MultiBranch', branches=branches, sup=[pack])])
unlabeled = dict(
    type='mmssl.UnlabeledImageDataset',
    data_root=data_root,
    img_path='img_dir/train',
    ann_file='splits/unlabeled.txt',
    pipeline=[load[0], crop, dict(type='mmssl.MultiBranch', branches=branches, unsup_weak=[pack])])
model = dict(
    type='mmssl.CrossPseudoSupervision',
    data_preprocessor=dict(
        type='mmssl.MultiBranchDataPreprocessor',
        data_preprocessor=dict(type='mmseg.SegDataPreProcessor', mean=[127.] * 3, std=[60.] * 3, size=(32, 32))),
    segmentor=dict(
        type='EncoderDecoder',
        _scope_='mmseg',
        backbone=dict(type='OwnBackbone'),
        decode_head=dict(
            type='FCNHead', in_channels=8, in_index=0, channels=8, num_convs=1, concat_input=False, num_classes=4),
        train_cfg=dict(),
        test_cfg=dict(mode='whole')))
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
        type='mmseg.OwnDataset',
        data_root=data_root,
        data_prefix=dict(img_path='img_dir/val', seg_map_path='ann_dir/val'),
        pipeline=[*load, pack]))
val_evaluator = dict(type='mmseg.IoUMetric', iou_metrics=['mIoU'])
optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.01))
train_cfg = dict(type='IterBasedTrainLoop', max_iters=2, val_interval=2)
val_cfg = dict(type='ValLoop')
default_hooks = dict(
    logger=dict(type='LoggerHook', interval=1, log_metric_by_epoch=False),
    checkpoint=dict(type='CheckpointHook', by_epoch=False, interval=2))
log_processor = dict(by_epoch=False)
