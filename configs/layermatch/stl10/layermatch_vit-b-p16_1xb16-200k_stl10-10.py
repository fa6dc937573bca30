# LayerMatch on STL-10 with 10 labels.
_base_ = [
    './freematch_vit-b-p16_1xb16-200k_stl10-10.py',
    '../../_base_/methods/layermatch.py',
]
model = dict(semi_train_cfg=dict(fairness_weight=0.))
custom_hooks = [_base_.grad_relu_hook, _base_.ema_head_hook]
