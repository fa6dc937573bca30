# UDA on STL-10 with 10 labels.
_base_ = [
    './fixmatch_vit-b-p16_1xb16-200k_stl10-10.py',
    '../../_base_/methods/uda.py',
]
model = dict(semi_train_cfg=dict(_delete_=True, **_base_.uda))
