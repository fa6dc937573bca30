# Shapes over textures, made by tools/demo/make_shapes.py: 6 labeled and 194 unlabeled images of 96 x 96 pixels.
_base_ = './seg_loaders.py'
data_root = '{{$SHAPES_ROOT:work_dirs/demo/synthetic/data}}'
crop_size = (96, 96)
metainfo = dict(
    classes=('background', 'disk', 'ring', 'square', 'triangle', 'cross'),
    palette=[[70, 70, 70], [230, 80, 60], [250, 190, 40], [60, 140, 230], [90, 190, 90], [180, 90, 200]])
geometry = [
    dict(type='RandomFlip', prob=0.5),
    dict(type='RandomFlip', prob=0.5, direction='vertical'),
]
train_dataloader = dict(
    batch_size=4,
    num_workers=1,
    dataset=dict(
        type='mmssl.SplitSegDataset',
        data_root=data_root,
        metainfo=metainfo,
        img_suffix='.png',
        ann_file='splits/labeled.txt',
        data_prefix=dict(img_path='img_dir/train', seg_map_path='ann_dir/train'),
        pipeline=[_base_.load_image, dict(type='LoadAnnotations'), *geometry, dict(type='PackSegInputs')]))
val_dataloader = dict(
    batch_size=8,
    num_workers=1,
    dataset=dict(
        type='mmssl.SplitSegDataset',
        data_root=data_root,
        metainfo=metainfo,
        img_suffix='.png',
        data_prefix=dict(img_path='img_dir/val', seg_map_path='ann_dir/val'),
        pipeline=[_base_.load_image, dict(type='LoadAnnotations'), dict(type='PackSegInputs')]))
test_dataloader = val_dataloader
# Half of 96 pixels would show too little.
tta_pipeline = [
    _base_.load_image,
    dict(
        type='TestTimeAug',
        transforms=[
            [dict(type='Resize', scale_factor=factor, keep_ratio=True) for factor in (0.75, 1.0, 1.25)],
            *_base_.tta_pipeline[1].transforms[1:],
        ]),
]
