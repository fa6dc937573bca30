# CamVid with a weak and a strong view of each unlabeled image.
_base_ = ['./camvid_semi.py', '../methods/weak_strong_views.py']
sources = _base_.train_dataloader.dataset.sources
train_dataloader = dict(
    dataset=dict(
        sources=dict(
            labeled=dict(pipeline=[*sources.labeled.pipeline[:-1], _base_.weak_strong_labeled]),
            unlabeled=dict(pipeline=[*sources.unlabeled.pipeline[:-1], _base_.weak_strong_unlabeled]))))
