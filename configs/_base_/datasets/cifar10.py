# CIFAR-10 in its official form (`cifar-10-batches-py` below the root); 4 labeled images of each class alone.
_base_ = './views_32.py'
data_root = '{{$CIFAR10_ROOT:data/cifar10}}'
image_norm = dict(mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375], to_rgb=True)
load = [dict(type='mmssl.ToBGR', source='rgb')]
train_set = dict(type='CIFAR10', data_root=data_root, split='train', download=False)
labeled = dict(
    type='mmssl.LabeledSubset',
    per_class=4,
    seed=0,
    dataset=dict(train_set, pipeline=[*load, *_base_.weak, _base_.pack]))
train_dataloader = dict(dataset=dict(sources=dict(labeled=labeled)))
val_dataloader = dict(
    dataset=dict(train_set, split='test', test_mode=True, pipeline=[*load, _base_.pack]))
test_dataloader = dict(_base_.val_dataloader, **val_dataloader)
