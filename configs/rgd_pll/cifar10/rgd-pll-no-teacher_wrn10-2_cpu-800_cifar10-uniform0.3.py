# RGD-PLL without the teacher on CIFAR-10 with uniform candidate sets (q = 0.3), at CPU size.
_base_ = './rgd-pll_wrn10-2_cpu-800_cifar10-uniform0.3.py'
model = dict(semi_train_cfg=dict(teacher=None))
custom_hooks = []
