# A residual network of 0.3 million parameters that halves the image at once: for trainings of minutes on a CPU, with
# MNIST and CIFAR-10. Statistics of batch normalization follow within some dozens of iterations.
_base_ = './wrn28_2.py'
model = dict(backbone=dict(depth=10, strides=(2, 2, 2), stem_stride=2, bn_momentum=0.1))
