# RGD-PLL without the norm balance on CIFAR-10 with uniform candidate sets (q = 0.7), at CPU size.
_base_ = './rgd-pll_wrn10-2_cpu-800_cifar10-uniform0.7.py'
optim_wrapper = dict(balance=False)
