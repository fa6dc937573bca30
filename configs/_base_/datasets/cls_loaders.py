# What the data sets of classification share: batches, sampling, and what is measured. Images, views and labels are
# theirs.
load_image = dict(type='LoadImageFromFile')
pack = dict(type='PackInputs')
train_dataloader = dict(
    batch_size=64,
    num_workers=4,
    persistent_workers=True,
    # One source: like the two of the semi-supervised configs, its augmentation depends on the draw alone, so a resumed
    # run sees the same images.
    sampler=dict(type='mmssl.MultiSourceSampler', source_ratio=[1]),
    dataset=dict(type='mmssl.MultiSourceDataset'))
val_dataloader = dict(
    batch_size=256,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False))
val_evaluator = dict(type='Accuracy', topk=(1, ))
test_evaluator = val_evaluator
