# RGD-PLL without the norm balance on CIFAR-10 with instance-dependent candidate sets (rate 0.4).
_base_ = './rgd-pll_resnet18_1xb256-500e_cifar10-instance0.4.py'
optim_wrapper = dict(balance=False)
