# PASCAL VOC 2012 in mmseg's folder layout; SegmentationClassAug must hold the masks of all 10,582 training images.
# The lists lie in <data_root>/splits, in CPS's naming (tools/datasets/make_splits.py writes them).
_base_ = './seg_loaders.py'
data_root = '{{$VOC_ROOT:data/VOCdevkit/VOC2012}}'
crop_size = (512, 512)
geometry = [*_base_.geometry, dict(type='RandomCrop', crop_size=crop_size)]
labeled = dict(
    type='mmssl.VOCDataset',
    data_root=data_root,
    ann_file='splits/train_aug_labeled_1-8.txt',
    data_prefix=dict(img_path='JPEGImages', seg_map_path='SegmentationClassAug'),
    pipeline=[_base_.load_image, dict(type='LoadAnnotations'), *geometry, dict(type='PackSegInputs')])
train_dataloader = dict(dataset=labeled)
val_dataloader = dict(
    dataset=dict(
        type='mmssl.VOCDataset',
        data_root=data_root,
        ann_file='ImageSets/Segmentation/val.txt',
        data_prefix=dict(img_path='JPEGImages', seg_map_path='SegmentationClass'),
        # Evaluated at its own size, by windows.
        pipeline=[_base_.load_image, dict(type='LoadAnnotations'), dict(type='PackSegInputs')]))
test_dataloader = val_dataloader
