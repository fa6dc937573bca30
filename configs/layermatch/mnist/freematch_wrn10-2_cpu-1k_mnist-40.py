# FreeMatch on MNIST with 40 labels, at CPU size.
_base_ = [
    './fixmatch_wrn10-2_cpu-1k_mnist-40.py',
    '../../_base_/methods/freematch.py',
]
freematch = dict(_base_.freematch, threshold=dict(_base_.freematch.threshold, momentum=0.01))
model = dict(semi_train_cfg=dict(_delete_=True, **freematch))
