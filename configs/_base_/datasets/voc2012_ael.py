# VOC 2012 as AEL takes it. Mixing is the only strong augmentation.
_base_ = './voc2012_semi.py'
crop_size = (513, 513)
# Smaller or larger with equal probability. The long side is 500 in nearly every image.
smaller = dict(type='RandomResize', scale=(500, 500), ratio_range=(0.5, 1.0), keep_ratio=True)
much_smaller = dict(type='RandomResize', scale=(500, 500), ratio_range=(0.1, 1.0), keep_ratio=True)
larger = dict(type='RandomResize', scale=(500, 500), ratio_range=(1.0, 2.0), keep_ratio=True)
flip_and_crop = [dict(type='RandomFlip', prob=0.5), dict(type='RandomCrop', crop_size=crop_size)]
geometry = [dict(type='RandomChoice', transforms=[[smaller], [larger]]), *flip_and_crop]
# Of the images that adaptive copy-paste takes from.
paste_pipeline = [
    _base_.load_image,
    dict(type='LoadAnnotations'),
    dict(type='RandomChoice', transforms=[[much_smaller], [larger]]),
    *flip_and_crop,
    dict(type='PackSegInputs'),
]
train_dataloader = dict(
    dataset=dict(
        sources=dict(
            labeled=dict(
                pipeline=[
                    _base_.load_image,
                    dict(type='LoadAnnotations'),
                    *geometry,
                    dict(type='mmssl.MultiBranch', branches=_base_.branches, sup=[dict(type='PackSegInputs')]),
                ]),
            unlabeled=dict(
                pipeline=[
                    _base_.load_image,
                    dict(type='mmssl.TrackPadding'),
                    *geometry,
                    dict(
                        type='mmssl.MultiBranch',
                        branches=_base_.branches,
                        unsup_weak=[dict(type='mmssl.PackSemiSegInputs')]),
                ]))))
