# STL-10 (`stl10_binary` below the root); 4 labeled images of each class alone.
_base_ = ['./cls_loaders.py', '../methods/randaugment.py']
data_root = '{{$STL10_ROOT:data/stl10}}'
image_norm = dict(mean=[112.4, 109.1, 98.6], std=[68.4, 66.6, 68.5], to_rgb=True)
load = [dict(type='mmssl.ToBGR', source='rgb')]
weak = [dict(type='mmssl.RandomPadCrop', crop_size=96, padding=12, padding_mode='reflect', flip_prob=0.5)]
# A square of 0 to half of the image, as in views_32.py.
strong = [
    *weak,
    _base_.randaugment,
    dict(type='Cutout', magnitude_range=(1, 49), magnitude_std='inf', prob=1., pad_val=(114, 123, 125)),
]
train_set = dict(type='mmssl.STL10', data_root=data_root, split='train')
# What is unlabeled: 100,000 images and all training images.
unlabeled_set = dict(train_set, split='train+unlabeled')
labeled = dict(
    type='mmssl.LabeledSubset',
    per_class=4,
    seed=0,
    dataset=dict(train_set, pipeline=[*load, *weak, _base_.pack]))
train_dataloader = dict(dataset=dict(sources=dict(labeled=labeled)))
val_dataloader = dict(dataset=dict(train_set, split='test', test_mode=True, pipeline=[*load, _base_.pack]))
test_dataloader = dict(_base_.val_dataloader, **val_dataloader)
