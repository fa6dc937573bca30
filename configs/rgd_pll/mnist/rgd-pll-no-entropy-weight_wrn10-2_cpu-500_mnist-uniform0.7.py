# RGD-PLL without entropy weights on MNIST with uniform candidate sets (q = 0.7), at CPU size.
_base_ = './rgd-pll_wrn10-2_cpu-500_mnist-uniform0.7.py'
model = dict(semi_train_cfg=dict(entropy_weighting=False))
