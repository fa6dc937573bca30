# Label smoothing, ResNet-50, Flowers-102.
_base_ = ['./ce_resnet50_1xb64-100e_flowers102.py', '../../_base_/methods/label_smoothing.py']
model = dict(head=dict(loss=dict(_delete_=True, **_base_.label_smoothing)))
