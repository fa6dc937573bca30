# RGD-PLL without the teacher on CIFAR-10 with instance-dependent candidate sets (rate 0.4).
_base_ = './rgd-pll_resnet18_1xb256-500e_cifar10-instance0.4.py'
model = dict(semi_train_cfg=dict(teacher=None))
custom_hooks = []
