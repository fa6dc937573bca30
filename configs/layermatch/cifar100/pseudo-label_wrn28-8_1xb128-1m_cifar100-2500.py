# PseudoLabel on CIFAR-100 with 2,500 labels.
_base_ = [
    './fixmatch_wrn28-8_1xb512-1m_cifar100-2500.py',
    '../../_base_/methods/pseudo_label.py',
]
model = dict(semi_train_cfg=dict(_delete_=True, **_base_.pseudo_label, unsup_ramp=419430))
branches = ['sup', 'unsup_weak']
view = [*_base_.weak, _base_.pack]
sup_view = dict(type='mmssl.MultiBranch', branches=branches, sup=view)
unsup_views = dict(type='mmssl.MultiBranch', branches=branches, unsup_weak=view)
train_dataloader = dict(
    batch_size=128,
    sampler=dict(source_ratio=[1, 1]),
    dataset=dict(
        sources=dict(
            labeled=dict(dataset=dict(pipeline=[*_base_.load, sup_view])),
            unlabeled=dict(pipeline=[*_base_.load, unsup_views]))))
auto_scale_lr = dict(base_batch_size=128)
