# Fashion-MNIST with a set of candidate labels for each training image, in a weak and a strong view. The sets are in
# files of tools/datasets/make_candidates.py, one for each seed.
_base_ = './fashion_mnist.py'
candidate_root = '{{$FASHION_MNIST_CANDIDATES:data/fashion_mnist/candidates}}'
weak = [dict(type='mmssl.RandomPadCrop', crop_size=28, padding=4, padding_mode='reflect', flip_prob=0.5)]
# A square of exactly 16 pixels, cut at the border.
strong = [*weak, dict(type='Cutout', shape=16, prob=1., pad_val=0)]
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
