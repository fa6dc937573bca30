"""RGD-PLL, its parts and baselines, on CIFAR-10 with uniform candidates, q = 0.3, at CPU size."""

base = 'mnist_pll_q3'
title = 'CIFAR-10, uniform candidates, q = 0.3, accuracy (%) on the 10,000 test images'
config = 'configs/rgd_pll/cifar10/{name}_wrn10-2_cpu-800_cifar10-uniform0.3.py'
data_root = dict(env='CIFAR10_ROOT', default='data/cifar10')
path_variables = ['CIFAR10_IMAGES_CANDIDATES']
plots = 'configs/rgd_pll/cifar10-q3.png'
