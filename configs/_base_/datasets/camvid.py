# CamVid at a third of its resolution, the 46 labeled images (1/8) alone. The root has img_dir and ann_dir, each with
# train, val and test.
data_root = '{{$CAMVID_ROOT:data/camvid}}'
split_dir = '{{ fileDirname }}/../splits/camvid'
crop_size = (112, 112)
# Square root of median frequency over frequency of the classes in the labeled images, as tools/check_data.py prints it.
# Without it a short training finds none of the five rarest classes.
class_weight = [0.51, 0.43, 2.0, 0.37, 1.0, 0.62, 1.95, 2.55, 0.84, 2.44, 2.8]
load_image = dict(type='LoadImageFromFile')
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
    pipeline=[load_image, dict(type='LoadAnnotations'), *geometry, dict(type='PackSegInputs')])
train_dataloader = dict(
    batch_size=4,
    num_workers=2,
    persistent_workers=True,
    sampler=dict(type='InfiniteSampler', shuffle=True),
    dataset=labeled)
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
            dict(type='Resize', scale=(160, 120), keep_ratio=True),
            # After Resize: the metric compares with the labels at their own resolution.
            dict(type='LoadAnnotations'),
            dict(type='PackSegInputs'),
        ]))
test_dataloader = val_dataloader
val_evaluator = dict(type='IoUMetric', iou_metrics=['mIoU'])
test_evaluator = val_evaluator
