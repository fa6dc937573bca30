# Cityscapes with a weak and a strong view of each unlabeled image.
_base_ = './cityscapes_semi.py'
branches = ['sup', 'unsup_weak', 'unsup_strong']
train_dataloader = dict(
    dataset=dict(
        sources=dict(
            labeled=dict(
                pipeline=[
                    *_base_.labeled.pipeline[:-1],
                    dict(type='mmssl.MultiBranch', branches=branches, sup=_base_.labeled.pipeline[-1:]),
                ]),
            unlabeled=dict(
                pipeline=[
                    *_base_.train_dataloader.dataset.sources.unlabeled.pipeline[:-1],
                    dict(
                        type='mmssl.MultiBranch',
                        branches=branches,
                        unsup_weak=[dict(type='mmssl.PackSemiSegInputs')],
                        unsup_strong=[dict(type='PhotoMetricDistortion'), dict(type='mmssl.PackSemiSegInputs')]),
                ]))))
