# UDA on STL-10 with 250 labels.
_base_ = [
    './fixmatch_wrn37-2_1xb512-1m_stl10-250.py',
    '../../_base_/methods/uda.py',
]
model = dict(semi_train_cfg=dict(_delete_=True, **_base_.uda))
