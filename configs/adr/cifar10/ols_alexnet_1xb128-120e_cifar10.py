# Online label smoothing, AlexNet, CIFAR-10.
_base_ = ['./ce_alexnet_1xb128-120e_cifar10.py', '../../_base_/methods/online_label_smoothing.py']
model = dict(head=dict(loss=dict(_delete_=True, **_base_.ols_loss, num_classes=10)))
custom_hooks = [dict(_base_.ols_hook, interval=391)]
