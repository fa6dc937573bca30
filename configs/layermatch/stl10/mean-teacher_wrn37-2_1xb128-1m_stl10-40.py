# Mean teacher on STL-10 with 40 labels.
_base_ = [
    './fixmatch_wrn37-2_1xb512-1m_stl10-40.py',
    '../../_base_/methods/mean_teacher_cls.py',
]
model = dict(semi_train_cfg=dict(_delete_=True, **_base_.mean_teacher_cls, unsup_ramp=419430))
branches = ['sup', 'unsup_weak', 'unsup_weak2']
view = [*_base_.weak, _base_.pack]
sup_view = dict(type='mmssl.MultiBranch', branches=branches, sup=view)
unsup_views = dict(type='mmssl.MultiBranch', branches=branches, unsup_weak=view, unsup_weak2=view)
train_dataloader = dict(
    batch_size=128,
    sampler=dict(source_ratio=[1, 1]),
    dataset=dict(
        sources=dict(
            labeled=dict(dataset=dict(pipeline=[*_base_.load, sup_view])),
            unlabeled=dict(pipeline=[*_base_.load, unsup_views]))))
custom_hooks = [_base_.mean_teacher_hook]
auto_scale_lr = dict(base_batch_size=128)
