# RGD-PLL on SVHN with uniform candidate sets (q = 0.1).
_base_ = [
    '../../_base_/models/resnet18_32.py',
    '../../_base_/datasets/svhn_partial.py',
    '../../_base_/methods/rgd_pll.py',
    '../../_base_/schedules/partial_500e.py',
    '../../_base_/default_runtime_cls.py',
]
classifier = dict(_base_.model, data_preprocessor=_base_.image_norm)
semi_train_cfg = dict(_base_.rgd_pll.semi_train_cfg, unsup_begin=2870, unsup_ramp=11480)
model = dict(
    _delete_=True,
    type='mmssl.PartialLabelClassifier',
    classifier=classifier,
    estimator=_base_.rgd_pll.estimator,
    semi_train_cfg=semi_train_cfg)
optim_wrapper = dict(_base_.rgd_pll_surgery, warmup=2870, ramp=11480)
custom_hooks = [_base_.rgd_pll_hook]
param_scheduler = [dict(_base_.param_scheduler[0], T_max=143500, end=143500)]
train_cfg = dict(max_iters=143500, val_interval=2870)
default_hooks = dict(checkpoint=dict(interval=2870))
