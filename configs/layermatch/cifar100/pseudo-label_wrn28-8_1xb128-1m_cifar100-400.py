# PseudoLabel on CIFAR-100 with 400 labels.
_base_ = [
    './fixmatch_wrn28-8_1xb512-1m_cifar100-400.py',
    '../../_base_/methods/pseudo_label.py',
]
model = dict(semi_train_cfg=dict(_delete_=True, **_base_.pseudo_label, unsup_ramp=419430))
train_dataloader = dict(batch_size=128, sampler=dict(source_ratio=[1, 1]))
auto_scale_lr = dict(base_batch_size=128)
