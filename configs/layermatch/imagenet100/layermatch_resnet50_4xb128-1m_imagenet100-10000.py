# LayerMatch on ImageNet-100 with 10,000 labels.
_base_ = [
    './freematch_resnet50_4xb128-1m_imagenet100-10000.py',
    '../../_base_/methods/layermatch.py',
]
model = dict(semi_train_cfg=dict(fairness_weight=0.))
custom_hooks = [*_base_.custom_hooks, _base_.grad_relu_hook, _base_.ema_head_hook]
