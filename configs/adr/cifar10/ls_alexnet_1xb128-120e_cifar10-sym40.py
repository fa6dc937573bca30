# Label smoothing, AlexNet, CIFAR-10, 40 % of the labels wrong.
_base_ = './ls_alexnet_1xb128-120e_cifar10.py'
train_dataloader = dict(
    dataset=dict(
        sources=dict(
            labeled=dict(
                _delete_=True,
                type='mmssl.NoisyLabelDataset',
                noise=dict(kind='symmetric', rate=0.4, seed=123),
                dataset=_base_.train_set))))
