# PseudoLabel on STL-10 with 40 labels.
_base_ = [
    './fixmatch_vit-b-p16_1xb16-200k_stl10-40.py',
    '../../_base_/methods/pseudo_label.py',
]
model = dict(semi_train_cfg=dict(_delete_=True, **_base_.pseudo_label, unsup_ramp=81920))
branches = ['sup', 'unsup_weak']
view = [*_base_.weak, _base_.pack]
sup_view = dict(type='mmssl.MultiBranch', branches=branches, sup=view)
unsup_views = dict(type='mmssl.MultiBranch', branches=branches, unsup_weak=view)
train_dataloader = dict(
    batch_size=16,
    sampler=dict(source_ratio=[1, 1]),
    dataset=dict(
        sources=dict(
            labeled=dict(dataset=dict(pipeline=[*_base_.load, sup_view])),
            unlabeled=dict(pipeline=[*_base_.load, unsup_views]))))
