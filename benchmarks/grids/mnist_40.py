"""LayerMatch, its parts and what it stands on, on MNIST with 40 labels at CPU size."""

base = 'mnist_10'
title = 'MNIST, 40 labels, accuracy (%) on the 10,000 test images'
config = 'configs/layermatch/mnist/{name}_wrn10-2_cpu-1k_mnist-40.py'
plots = 'configs/layermatch/mnist-40.png'
