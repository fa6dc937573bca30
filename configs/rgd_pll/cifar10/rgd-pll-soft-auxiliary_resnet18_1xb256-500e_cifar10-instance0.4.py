# RGD-PLL with the soft loss among the auxiliary ones on CIFAR-10 with instance-dependent candidate sets (rate 0.4).
_base_ = './rgd-pll_resnet18_1xb256-500e_cifar10-instance0.4.py'
optim_wrapper = dict(primary=['prediction_loss'], auxiliary=['soft_loss', 'reliability_loss'])
