# The same with all training images as a second source, without their labels; a batch is 64 labeled and 448 unlabeled
# ones.
_base_ = './cifar10.py'
branches = ['sup', 'unsup_weak', 'unsup_strong']
train_dataloader = dict(
    batch_size=512,
    sampler=dict(source_ratio=[1, 7]),
    dataset=dict(
        include_labeled=True,
        sources=dict(
            labeled=dict(
                dataset=dict(
                    pipeline=[
                        *_base_.load,
                        dict(type='mmssl.MultiBranch', branches=branches, sup=[*_base_.weak, _base_.pack]),
                    ])),
            unlabeled=dict(
                _base_.train_set,
                pipeline=[
                    *_base_.load,
                    dict(
                        type='mmssl.MultiBranch',
                        branches=branches,
                        unsup_weak=[*_base_.weak, _base_.pack],
                        unsup_strong=[*_base_.strong, _base_.pack]),
                ]))))
