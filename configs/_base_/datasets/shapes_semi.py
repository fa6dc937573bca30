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
            labeled=dict(
                type='mmssl.SplitSegDataset',
                data_root=_base_.data_root,
                metainfo=_base_.metainfo,
                img_suffix='.png',
                ann_file='splits/labeled.txt',
                data_prefix=dict(img_path='img_dir/train', seg_map_path='ann_dir/train'),
                pipeline=[
                    _base_.load_image,
                    dict(type='LoadAnnotations'),
                    *_base_.geometry,
                    dict(type='mmssl.MultiBranch', branches=branches, sup=[dict(type='PackSegInputs')]),
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
