# Online label smoothing, ResNet-50, Flowers-102.
_base_ = ['./ce_resnet50_1xb64-100e_flowers102.py', '../../_base_/methods/online_label_smoothing.py']
model = dict(head=dict(loss=dict(_delete_=True, **_base_.ols_loss, num_classes=102)))
custom_hooks = [dict(_base_.ols_hook, interval=32)]
