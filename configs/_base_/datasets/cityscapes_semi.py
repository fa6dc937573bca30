# Cityscapes with an unlabeled source beside the labeled one; a batch of one GPU is 2 labeled and 2 unlabeled images.
_base_ = './cityscapes.py'
branches = ['sup', 'unsup_weak']
train_dataloader = dict(
    batch_size=4,
    sampler=dict(_delete_=True, type='mmssl.MultiSourceSampler', source_ratio=[1, 1]),
    dataset=dict(
        _delete_=True,
        type='mmssl.MultiSourceDataset',
        sources=dict(
            labeled=dict(
                type='mmssl.CityscapesDataset',
                data_root=_base_.data_root,
                ann_file='splits/train_aug_labeled_1-8.txt',
                data_prefix=dict(img_path='', seg_map_path=''),
                pipeline=[
                    _base_.load_image,
                    dict(type='LoadAnnotations'),
                    *_base_.geometry,
                    dict(type='mmssl.MultiBranch', branches=branches, sup=[dict(type='PackSegInputs')]),
                ]),
            unlabeled=dict(
                type='mmssl.UnlabeledImageDataset',
                data_root=_base_.data_root,
                ann_file='splits/train_aug_unlabeled_1-8.txt',
                img_path='',
                pipeline=[
                    _base_.load_image,
                    dict(type='mmssl.TrackPadding'),
                    *_base_.geometry,
                    dict(
                        type='mmssl.MultiBranch',
                        branches=branches,
                        unsup_weak=[dict(type='mmssl.PackSemiSegInputs')]),
                ]))))
