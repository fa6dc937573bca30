"""LayerMatch, its parts and what it stands on, on CIFAR-10 with 40 labels at CPU size."""

base = 'mnist_10'
title = 'CIFAR-10, 40 labels, accuracy (%) on the 10,000 test images'
config = 'configs/layermatch/cifar10/{name}_wrn10-2_cpu-1k_cifar10-40.py'
data_root = dict(env='CIFAR10_ROOT', default='data/cifar10')
plots = 'configs/layermatch/cifar10-40.png'
