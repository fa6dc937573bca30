# The first image of VOC 2012 with true objects; each object, and the background, is a segment. Each image has a network
# of its own: another one with `indices=[i]`. The root is VOCdevkit/VOC2012; the list names the images with objects.
dataset = dict(
    type='mmssl.UnlabeledImageDataset',
    data_root='{{$VOC_ROOT:data/VOCdevkit/VOC2012}}',
    ann_file='ImageSets/Segmentation/val.txt',
    img_path='JPEGImages',
    seg_map_path='SegmentationObject',
    seg_map_suffix='.png',
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
