# RGD-PLL without the schedule on CIFAR-10 with instance-dependent candidate sets (rate 0.4).
_base_ = './rgd-pll_resnet18_1xb256-500e_cifar10-instance0.4.py'
model = dict(semi_train_cfg=dict(unsup_begin=0, unsup_ramp=0))
optim_wrapper = dict(warmup=0, ramp=0)
