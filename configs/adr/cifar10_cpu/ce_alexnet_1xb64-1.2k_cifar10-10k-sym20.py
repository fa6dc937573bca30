# Cross entropy, AlexNet, 10,000 images of CIFAR-10, at CPU size, 20 % of the labels wrong.
_base_ = './ce_alexnet_1xb64-1.2k_cifar10-10k.py'
train_dataloader = dict(
    dataset=dict(
        sources=dict(
            labeled=dict(
                _delete_=True,
                type='mmssl.NoisyLabelDataset',
                noise=dict(kind='symmetric', rate=0.2, seed=123),
                dataset=_base_.train_set))))
