# MNIST with a set of candidate labels for each training image, in a weak and a strong view. The sets are in a file of
# tools/datasets/make_candidates.py.
_base_ = './mnist.py'
branches = ['unsup_weak', 'unsup_strong']
candidate_file = '{{$MNIST_CANDIDATES:data/mnist/candidates/uniform_0.3.txt}}'
train_dataloader = dict(
    batch_size=64,
    dataset=dict(
        sources=dict(
            labeled=dict(
                _delete_=True,
                type='mmssl.PartialLabelDataset',
                candidate_file=candidate_file,
                dataset=dict(
                    _base_.train_set,
                    pipeline=[
                        *_base_.load,
                        dict(
                            type='mmssl.MultiBranch',
                            branches=branches,
                            unsup_weak=[*_base_.weak, _base_.pack],
                            unsup_strong=[*_base_.strong, _base_.pack]),
                    ])))))
