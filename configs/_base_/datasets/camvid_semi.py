# CamVid with an unlabeled source beside the labeled one; a batch is 4 labeled and 8 unlabeled images.
_base_ = './camvid.py'
branches = ['sup', 'unsup_weak']
train_dataloader = dict(
    batch_size=12,
    sampler=dict(_delete_=True, type='mmssl.MultiSourceSampler', source_ratio=[1, 2]),
    dataset=dict(
        _delete_=True,
        type='mmssl.MultiSourceDataset',
        sources=dict(
            labeled=dict(
                type='mmssl.CamVidDataset',
                data_root=_base_.data_root,
                ann_file='',
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
                ann_file='',
                img_path='img_dir/train',
                pipeline=[
                    _base_.load_image,
                    dict(type='mmssl.TrackPadding'),
                    *_base_.geometry,
                    dict(type='mmssl.MultiBranch', branches=branches, unsup_weak=[dict(type='mmssl.PackSemiSegInputs')]),
                ]))))
