# RGD-PLL without the soft loss on CIFAR-10 with instance-dependent candidate sets (rate 0.4), at CPU size.
_base_ = './rgd-pll_wrn10-2_cpu-800_cifar10-instance0.4.py'
model = dict(semi_train_cfg=dict(soft_loss=False))
