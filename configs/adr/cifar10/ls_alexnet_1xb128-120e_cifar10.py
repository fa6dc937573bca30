# Label smoothing, AlexNet, CIFAR-10.
_base_ = ['./ce_alexnet_1xb128-120e_cifar10.py', '../../_base_/methods/label_smoothing.py']
model = dict(head=dict(loss=dict(_delete_=True, **_base_.label_smoothing)))
