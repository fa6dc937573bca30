# SVHN (`train_32x32.mat`, `test_32x32.mat` in the root; needs scipy); 4 labeled images of each class alone. Digits are
# not mirrored. (`split='train+extra'` of the unlabeled source adds 531,131 images.)
_base_ = './views_32.py'
data_root = '{{$SVHN_ROOT:data/svhn}}'
image_norm = dict(mean=[111.61, 113.16, 120.57], std=[50.5, 51.26, 50.24], to_rgb=True)
load = [dict(type='mmssl.ToBGR', source='rgb')]
weak = [dict(_base_.weak[0], flip_prob=0.)]
strong = [*weak, *_base_.strong[1:]]
train_set = dict(type='mmssl.SVHN', data_root=data_root, split='train')
labeled = dict(
    type='mmssl.LabeledSubset',
    per_class=4,
    seed=0,
    dataset=dict(train_set, pipeline=[*load, *weak, _base_.pack]))
train_dataloader = dict(dataset=dict(sources=dict(labeled=labeled)))
val_dataloader = dict(dataset=dict(train_set, split='test', test_mode=True, pipeline=[*load, _base_.pack]))
test_dataloader = dict(_base_.val_dataloader, **val_dataloader)
