# CamVid at a third of its resolution, the 46 labeled images (1/8) alone. The root has img_dir and ann_dir, each with
# train, val and test.
data_root = '{{$CAMVID_ROOT:data/camvid}}'
split_dir = '{{ fileDirname }}/../splits/camvid'
crop_size = (112, 112)
# One over the square root of each class's share of the labeled pixels, with mean 1 over pixels, as tools/check_data.py
# prints it. Without it a short training finds none of the five rarest classes.
class_weight = [0.89, 0.75, 3.47, 0.64, 1.74, 1.07, 3.39, 4.43, 1.46, 4.24, 4.86]
# Without reduction, since mmseg's own mean fails on weights together with ignored pixels; the mean is taken when the
# losses are added up.
weighted_cross_entropy = dict(
    _delete_=True, type='CrossEntropyLoss', reduction='none', class_weight=class_weight)
load_image = dict(type='LoadImageFromFile')
# On two cores the workers take time from training: each image is decoded once and kept at the largest size used.
shrink = dict(type='Resize', scale=(240, 180), keep_ratio=True, interpolation='area')
load_with_labels = dict(type='mmssl.Cached', transforms=[load_image, dict(type='LoadAnnotations'), shrink])
geometry = [
    dict(type='RandomResize', scale=(160, 120), ratio_range=(0.75, 1.5), keep_ratio=True),
    dict(type='RandomCrop', crop_size=crop_size),
    dict(type='RandomFlip', prob=0.5),
]
labeled = dict(
    type='mmssl.CamVidDataset',
    data_root=data_root,
    ann_file=f'{split_dir}/labeled_1-8.txt',
    data_prefix=dict(img_path='img_dir/train', seg_map_path='ann_dir/train'),
    pipeline=[load_with_labels, *geometry, dict(type='PackSegInputs')])
train_dataloader = dict(
    batch_size=4,
    num_workers=2,
    persistent_workers=True,
    # One source: like the two of the semi-supervised configs, its augmentation depends on the draw alone, so a resumed
    # run sees the same images.
    sampler=dict(type='mmssl.MultiSourceSampler', source_ratio=[1]),
    dataset=dict(type='mmssl.MultiSourceDataset', sources=dict(labeled=labeled)))
val_dataloader = dict(
    batch_size=1,
    num_workers=2,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='mmssl.CamVidDataset',
        data_root=data_root,
        data_prefix=dict(img_path='img_dir/val', seg_map_path='ann_dir/val'),
        pipeline=[
            load_image,
            dict(type='Resize', scale=(160, 120), keep_ratio=True, interpolation='area'),
            # After Resize: the metric compares with the labels at their own resolution.
            dict(type='LoadAnnotations'),
            dict(type='PackSegInputs'),
        ]))
test_dataloader = val_dataloader
val_evaluator = dict(type='IoUMetric', iou_metrics=['mIoU'])
test_evaluator = val_evaluator
