# Fashion-MNIST in its own format, as mnist.py; clothes may be mirrored.
_base_ = './mnist.py'
data_root = '{{$FASHION_MNIST_ROOT:data/fashion_mnist}}'
image_norm = dict(mean=[72.94] * 3, std=[90.02] * 3, to_rgb=True)
weak = [dict(_base_.weak[0], flip_prob=0.5)]
strong = [*weak, *_base_.strong[1:]]
train_set = dict(type='FashionMNIST', data_root=data_root)
train_dataloader = dict(
    dataset=dict(
        sources=dict(
            labeled=dict(
                dataset=dict(
                    type='FashionMNIST', data_root=data_root, pipeline=[*_base_.load, *weak, _base_.pack])))))
val_dataloader = dict(dataset=dict(type='FashionMNIST', data_root=data_root))
test_dataloader = dict(dataset=dict(type='FashionMNIST', data_root=data_root))
