# Cityscapes; <data_root>/splits has the lists, each line `image<TAB>label` relative to the root, in CPS's naming
# (tools/datasets/make_splits.py writes them).
_base_ = './seg_loaders.py'
data_root = '{{$CITYSCAPES_ROOT:data/cityscapes}}'
crop_size = (800, 800)
geometry = [*_base_.geometry, dict(type='RandomCrop', crop_size=crop_size)]
labeled = dict(
    type='mmssl.CityscapesDataset',
    data_root=data_root,
    ann_file='splits/train_aug_labeled_1-8.txt',
    data_prefix=dict(img_path='', seg_map_path=''),
    pipeline=[_base_.load_image, dict(type='LoadAnnotations'), *geometry, dict(type='PackSegInputs')])
train_dataloader = dict(dataset=labeled)
val_dataloader = dict(
    dataset=dict(
        type='mmssl.CityscapesDataset',
        data_root=data_root,
        ann_file='',
        data_prefix=dict(img_path='leftImg8bit/val', seg_map_path='gtFine/val'),
        # Evaluated at its own size, by windows.
        pipeline=[_base_.load_image, dict(type='LoadAnnotations'), dict(type='PackSegInputs')]))
test_dataloader = val_dataloader
