"""RGD-PLL, its parts and baselines, on MNIST with instance-dependent candidates, rate 0.4, at CPU size."""

base = 'mnist_pll_q3'
title = 'MNIST, instance-dependent candidates, rate 0.4, accuracy (%) on the 10,000 test images'
config = 'configs/rgd_pll/mnist/{name}_wrn10-2_cpu-500_mnist-instance0.4.py'
plots = 'configs/rgd_pll/mnist-id.png'
