"""RGD-PLL, its parts and baselines, on MNIST with uniform candidates, q = 0.7, at CPU size."""

base = 'mnist_pll_q3'
title = 'MNIST, uniform candidates, q = 0.7, accuracy (%) on the 10,000 test images'
config = 'configs/rgd_pll/mnist/{name}_wrn10-2_cpu-500_mnist-uniform0.7.py'
plots = 'configs/rgd_pll/mnist-q7.png'
