# CamVid with a weak and two strong views of each unlabeled image; a batch is 4 labeled and 4 unlabeled ones, drawn two
# by two so that CutMix finds its pairs.
_base_ = ['./camvid_semi.py', '../methods/unimatch_views.py']
sources = _base_.train_dataloader.dataset.sources
train_dataloader = dict(
    batch_size=8,
    sampler=dict(source_ratio=[2, 2]),
    dataset=dict(
        sources=dict(
            labeled=dict(pipeline=[*sources.labeled.pipeline[:-1], _base_.unimatch_labeled]),
            unlabeled=dict(pipeline=[*sources.unlabeled.pipeline[:-1], _base_.unimatch_unlabeled]))))
