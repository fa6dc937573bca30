# Label smoothing, ConvMixer-256/8, CIFAR-10.
_base_ = ['./ce_convmixer-256-8_1xb128-100e_cifar10.py', '../../_base_/methods/label_smoothing.py']
model = dict(head=dict(loss=dict(_delete_=True, **_base_.label_smoothing)))
