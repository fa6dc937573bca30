# Online label smoothing, ResNet-50, ImageNet-1K.
_base_ = ['./ce_resnet50_8xb32-100e_in1k.py', '../../_base_/methods/online_label_smoothing.py']
model = dict(head=dict(loss=dict(_delete_=True, **_base_.ols_loss, num_classes=1000)))
custom_hooks = [dict(_base_.ols_hook, interval=5005)]
