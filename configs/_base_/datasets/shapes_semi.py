# The same with the unlabeled images as a second source; a batch is 4 labeled and 4 unlabeled ones.
_base_ = './shapes.py'
branches = ['sup', 'unsup_weak']
train_dataloader = dict(
    batch_size=8,
    sampler=dict(_delete_=True, type='mmssl.MultiSourceSampler', source_ratio=[1, 1]),
    dataset=dict(
        _delete_=True,
        type='mmssl.MultiSourceDataset',
        sources=dict(
            # The labeled images of `shapes.py`; what it packs becomes a branch.
            labeled=dict(
                _base_.train_dataloader.dataset,
                pipeline=[
                    *_base_.train_dataloader.dataset.pipeline[:-1],
                    dict(
                        type='mmssl.MultiBranch',
                        branches=branches,
                        sup=_base_.train_dataloader.dataset.pipeline[-1:]),
                ]),
            unlabeled=dict(
                type='mmssl.UnlabeledImageDataset',
                data_root=_base_.data_root,
                ann_file='splits/unlabeled.txt',
                img_path='img_dir/train',
                # For FPLDiagnosticsHook alone: the loss never sees it.
                seg_map_path='ann_dir/train',
                pipeline=[
                    _base_.load_image,
                    dict(type='LoadAnnotations'),
                    *_base_.geometry,
                    dict(
                        type='mmssl.MultiBranch', branches=branches, unsup_weak=[dict(type='mmssl.PackSemiSegInputs')]),
                ]))))
