# CamVid with a weak and two strong views of each unlabeled image; a batch is 4 labeled and 4 unlabeled ones, drawn two
# by two so that CutMix finds its pairs.
_base_ = ['./camvid_semi.py', '../methods/unimatch_views.py']
branches = ['sup', 'unsup_weak', 'unsup_strong', 'unsup_strong2']
strong_view = [*_base_.unimatch_view, dict(type='mmssl.PackSemiSegInputs')]
train_dataloader = dict(
    batch_size=8,
    sampler=dict(source_ratio=[2, 2]),
    dataset=dict(
        sources=dict(
            labeled=dict(
                pipeline=[
                    *_base_.labeled.pipeline[:-1],
                    dict(type='mmssl.MultiBranch', branches=branches, sup=[dict(type='PackSegInputs')]),
                ]),
            unlabeled=dict(
                pipeline=[
                    *_base_.train_dataloader.dataset.sources.unlabeled.pipeline[:-1],
                    dict(
                        type='mmssl.MultiBranch',
                        branches=branches,
                        unsup_weak=[dict(type='mmssl.PackSemiSegInputs')],
                        unsup_strong=strong_view,
                        unsup_strong2=strong_view),
                ]))))
