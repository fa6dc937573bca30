# Label smoothing, AlexNet, 10,000 images of CIFAR-10, at CPU size.
_base_ = ['./ce_alexnet_1xb64-1.2k_cifar10-10k.py', '../../_base_/methods/label_smoothing.py']
model = dict(head=dict(loss=dict(_delete_=True, **_base_.label_smoothing)))
