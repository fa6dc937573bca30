# VOC 2012 as UniMatch takes it: a weak and two strong views of each unlabeled image. A batch of one GPU is 2 labeled
# and 2 unlabeled images, drawn two by two so that CutMix finds its pairs.
_base_ = ['./voc2012_semi.py', '../methods/unimatch_views.py']
crop_size = (321, 321)
# The long side, 500 in nearly every image, times 0.5 to 2.
geometry = [
    dict(type='RandomResize', scale=(500, 500), ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type='RandomCrop', crop_size=crop_size),
    dict(type='RandomFlip', prob=0.5),
]
train_dataloader = dict(
    sampler=dict(source_ratio=[2, 2]),
    dataset=dict(
        sources=dict(
            labeled=dict(
                pipeline=[_base_.load_image, dict(type='LoadAnnotations'), *geometry, _base_.unimatch_labeled]),
            unlabeled=dict(
                pipeline=[_base_.load_image, dict(type='mmssl.TrackPadding'), *geometry, _base_.unimatch_unlabeled]))))
