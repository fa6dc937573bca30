# Entropy penalty, ViT-B/16, ImageNet-1K.
_base_ = ['./ce_vit-b16_8xb128-300e_in1k.py', '../../_base_/methods/entropy.py']
model = dict(
    head=dict(
        loss=dict(
            _delete_=True,
            type='mmssl.CombinedLoss',
            losses=[dict(type='CrossEntropyLoss', use_soft=True), _base_.entropy_loss])))
