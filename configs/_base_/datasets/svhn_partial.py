# SVHN with a set of candidate labels for each training image, in a weak and a strong view; digits are not mirrored. The
# sets are in files of tools/datasets/make_candidates.py, one for each seed.
_base_ = './svhn.py'
candidate_root = '{{$SVHN_CANDIDATES:data/svhn/candidates}}'
weak = [dict(type='mmssl.RandomPadCrop', crop_size=32, padding=4, padding_mode='constant')]
strong = [*weak, _base_.randaugment]
two_views = [
    *_base_.load,
    dict(
        type='mmssl.MultiBranch',
        branches=['unsup_weak', 'unsup_strong'],
        unsup_weak=[*weak, _base_.pack],
        unsup_strong=[*strong, _base_.pack]),
]
# For methods that look at the weak view alone.
weak_view = [
    *_base_.load, dict(type='mmssl.MultiBranch', branches=['unsup_weak'], unsup_weak=[*weak, _base_.pack])
]
train_dataloader = dict(
    batch_size=256,
    dataset=dict(
        sources=dict(
            labeled=dict(
                _delete_=True,
                type='mmssl.PartialLabelDataset',
                candidate_file=candidate_root + '/uniform0.1_seed{seed}.txt',
                seed=0,
                dataset=dict(_base_.train_set, pipeline=two_views)))))
