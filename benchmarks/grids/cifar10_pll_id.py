"""RGD-PLL, its parts and baselines, on CIFAR-10 with instance-dependent candidates, rate 0.4, at CPU size."""

base = 'mnist_pll_q3'
title = 'CIFAR-10, instance-dependent candidates, rate 0.4, accuracy (%) on the 10,000 test images'
config = 'configs/rgd_pll/cifar10/{name}_wrn10-2_cpu-800_cifar10-instance0.4.py'
data_root = dict(env='CIFAR10_ROOT', default='data/cifar10')
path_variables = ['CIFAR10_IMAGES_CANDIDATES']
plots = 'configs/rgd_pll/cifar10-id.png'
