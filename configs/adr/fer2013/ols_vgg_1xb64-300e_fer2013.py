# Online label smoothing, VGG, FER2013.
_base_ = ['./ce_vgg_1xb64-300e_fer2013.py', '../../_base_/methods/online_label_smoothing.py']
model = dict(head=dict(loss=dict(_delete_=True, **_base_.ols_loss, num_classes=7)))
custom_hooks = [dict(_base_.ols_hook, interval=449)]
