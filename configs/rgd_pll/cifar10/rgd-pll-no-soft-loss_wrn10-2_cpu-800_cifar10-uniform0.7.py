# RGD-PLL without the soft loss on CIFAR-10 with uniform candidate sets (q = 0.7), at CPU size.
_base_ = './rgd-pll_wrn10-2_cpu-800_cifar10-uniform0.7.py'
model = dict(semi_train_cfg=dict(soft_loss=False))
