# FreeMatch on ImageNet-100 with 10,000 labels.
_base_ = [
    './fixmatch_resnet50_4xb128-1m_imagenet100-10000.py',
    '../../_base_/methods/freematch.py',
]
model = dict(semi_train_cfg=dict(_delete_=True, **_base_.freematch))
