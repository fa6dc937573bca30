# The first test image of BSDS500 with the truth of all its annotators. Each image has a network of its own: another one
# with `indices=[i]`, all of them with tools/unsupervised_segment.py. The root has the folder data of the download.
dataset = dict(
    type='mmssl.UnlabeledImageDataset',
    data_root='{{$BSDS500_ROOT:data/BSDS500}}',
    img_path='data/images/test',
    seg_map_path='data/groundTruth/test',
    seg_map_suffix='.mat',
    indices=[0],
    pipeline=[
        dict(
            type='mmssl.Cached',
            transforms=[
                dict(type='LoadImageFromFile'),
                dict(type='mmssl.LoadSegments'),
                dict(type='mmssl.ShrinkImage'),
            ]),
        dict(type='mmssl.PackSegments'),
    ])
train_dataloader = dict(
    batch_size=1, num_workers=0, sampler=dict(type='InfiniteSampler', shuffle=False), dataset=dataset)
val_dataloader = dict(
    batch_size=1, num_workers=0, sampler=dict(type='DefaultSampler', shuffle=False), dataset=dataset)
val_evaluator = dict(type='mmssl.SegmentMatchingIoU', annotators='all')
val_cfg = dict(type='ValLoop')
test_dataloader = val_dataloader
test_evaluator = val_evaluator
test_cfg = dict(type='TestLoop')
