# AdaMatch on STL-10 with 100 labels.
_base_ = [
    './fixmatch_vit-b-p16_1xb16-200k_stl10-100.py',
    '../../_base_/methods/adamatch.py',
]
model = dict(semi_train_cfg=dict(_delete_=True, **_base_.adamatch))
