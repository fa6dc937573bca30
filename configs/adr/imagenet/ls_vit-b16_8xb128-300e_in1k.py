# Label smoothing, ViT-B/16, ImageNet-1K.
_base_ = ['./ce_vit-b16_8xb128-300e_in1k.py', '../../_base_/methods/label_smoothing.py']
model = dict(head=dict(loss=dict(_delete_=True, **_base_.label_smoothing)))
