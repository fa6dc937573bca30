# Supervised training on two data sets in a fixed ratio; no branch, no semi-supervised model.
_base_ = './supervised.py'
source = _base_.train_dataloader.dataset
train_dataloader = dict(
    batch_size=3,
    sampler=dict(_delete_=True, type='mmssl.MultiSourceSampler', source_ratio=[2, 1]),
    dataset=dict(
        _delete_=True,
        type='mmssl.MultiSourceDataset',
        sources=dict(city=source, village=dict(source, ann_file='splits/unlabeled.txt'))))
custom_hooks = [dict(type='mmssl.IterationSeedHook')]
