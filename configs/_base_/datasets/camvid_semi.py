# CamVid, 46 labeled and 321 unlabeled images; a batch is 4 labeled and 8 unlabeled ones.
_base_ = './camvid.py'
branches = ['sup', 'unsup_weak']
train_dataloader = dict(
    batch_size=12,
    sampler=dict(source_ratio=[1, 2]),
    dataset=dict(
        sources=dict(
            labeled=dict(
                pipeline=[
                    _base_.load_with_labels,
                    *_base_.geometry,
                    dict(type='mmssl.MultiBranch', branches=branches, sup=[dict(type='PackSegInputs')]),
                ]),
            unlabeled=dict(
                type='mmssl.UnlabeledImageDataset',
                data_root=_base_.data_root,
                ann_file=f'{_base_.split_dir}/unlabeled_1-8.txt',
                img_path='img_dir/train',
                # The truth of the unlabeled images is for FPLDiagnosticsHook alone; without it, drop this key and
                # load without labels below.
                seg_map_path='ann_dir/train',
                pipeline=[
                    _base_.load_with_labels,
                    dict(type='mmssl.TrackPadding'),
                    *_base_.geometry,
                    dict(
                        type='mmssl.MultiBranch',
                        branches=branches,
                        unsup_weak=[dict(type='mmssl.PackSemiSegInputs')]),
                ]))))
