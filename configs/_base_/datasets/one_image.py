# One image, without any truth; the environment variable IMAGE names its file. `mmssl.ShrinkImage(max_side=...)` in the
# cached transforms makes a large one smaller.
dataset = dict(
    type='mmssl.UnlabeledImageDataset',
    img_path='{{$IMAGE:data/image.png}}',
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
