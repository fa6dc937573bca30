# VOC 2012 with an unlabeled source beside the labeled one; a batch of one GPU is 2 labeled and 2 unlabeled images.
_base_ = './voc2012.py'
branches = ['sup', 'unsup_weak']
train_dataloader = dict(
    batch_size=4,
    sampler=dict(_delete_=True, type='mmssl.MultiSourceSampler', source_ratio=[1, 1]),
    dataset=dict(
        _delete_=True,
        type='mmssl.MultiSourceDataset',
        sources=dict(
            # The labeled images of `voc2012.py`; what it packs becomes a branch.
            labeled=dict(
                _base_.labeled,
                pipeline=[
                    *_base_.labeled.pipeline[:-1],
                    dict(type='mmssl.MultiBranch', branches=branches, sup=_base_.labeled.pipeline[-1:]),
                ]),
            unlabeled=dict(
                type='mmssl.UnlabeledImageDataset',
                data_root=_base_.data_root,
                ann_file='splits/train_aug_unlabeled_1-8.txt',
                img_path=_base_.labeled.data_prefix.img_path,
                pipeline=[
                    _base_.load_image,
                    dict(type='mmssl.TrackPadding'),
                    *_base_.geometry,
                    dict(
                        type='mmssl.MultiBranch',
                        branches=branches,
                        unsup_weak=[dict(type='mmssl.PackSemiSegInputs')]),
                ]))))
