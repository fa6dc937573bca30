# PseudoLabel on ImageNet-100 with 10,000 labels.
_base_ = [
    './fixmatch_resnet50_4xb128-1m_imagenet100-10000.py',
    '../../_base_/methods/pseudo_label.py',
]
model = dict(semi_train_cfg=dict(_delete_=True, **_base_.pseudo_label, unsup_ramp=419430))
train_dataloader = dict(batch_size=32, sampler=dict(source_ratio=[1, 1]))
auto_scale_lr = dict(base_batch_size=128)
