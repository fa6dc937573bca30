# Cityscapes as UniMatch takes it: a weak and two strong views of each unlabeled image. A batch of one GPU is 2 labeled
# and 2 unlabeled images, drawn two by two so that CutMix finds its pairs. Crops of 769 as in the released code; the
# paper says 801.
_base_ = ['./cityscapes_semi.py', '../methods/unimatch_views.py']
crop_size = (769, 769)
geometry = [
    dict(type='RandomResize', scale=(2048, 1024), ratio_range=(0.5, 2.0), keep_ratio=True),
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
