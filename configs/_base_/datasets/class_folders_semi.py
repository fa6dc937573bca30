# The same with a bare folder of images as a second source; a batch is 8 labeled and 56 unlabeled ones.
_base_ = './class_folders.py'
branches = ['sup', 'unsup_weak', 'unsup_strong']
train_dataloader = dict(
    batch_size=64,
    sampler=dict(source_ratio=[1, 7]),
    dataset=dict(
        sources=dict(
            labeled=dict(
                pipeline=[
                    *_base_.load,
                    dict(type='mmssl.MultiBranch', branches=branches, sup=[*_base_.weak, _base_.pack]),
                ]),
            unlabeled=dict(
                type='mmssl.UnlabeledImageDataset',
                data_root=_base_.data_root,
                img_path='unlabeled',
                pipeline=[
                    *_base_.load,
                    dict(
                        type='mmssl.MultiBranch',
                        branches=branches,
                        unsup_weak=[*_base_.weak, _base_.pack],
                        unsup_strong=[*_base_.strong, _base_.pack]),
                ]))))
