# MNIST in its own format (four uncompressed idx files in the root); 4 labeled images of each class alone. Digits are
# not mirrored; they are moved by up to 2 pixels.
_base_ = ['./cls_loaders.py', '../methods/randaugment.py']
data_root = '{{$MNIST_ROOT:data/mnist}}'
# Gray images as three equal channels, so that networks and augmentation are those of colored ones.
image_norm = dict(mean=[33.32] * 3, std=[78.57] * 3, to_rgb=True)
load = [dict(type='mmssl.ToBGR', source='gray')]
weak = [dict(type='mmssl.RandomPadCrop', crop_size=28, padding=2, padding_mode='constant')]
strong = [
    *weak,
    _base_.randaugment,
    dict(type='Cutout', magnitude_range=(1, 15), magnitude_std='inf', prob=1., pad_val=0),
]
train_set = dict(type='MNIST', data_root=data_root, split='train', download=False)
labeled = dict(
    type='mmssl.LabeledSubset',
    per_class=4,
    seed=0,
    dataset=dict(train_set, pipeline=[*load, *weak, _base_.pack]))
train_dataloader = dict(dataset=dict(sources=dict(labeled=labeled)))
val_dataloader = dict(
    # mmpretrain chooses the files by `test_mode`.
    dataset=dict(
        type='MNIST',
        data_root=data_root,
        split='test',
        test_mode=True,
        download=False,
        pipeline=[*load, _base_.pack]))
test_dataloader = dict(_base_.val_dataloader, **val_dataloader)
