# RGD-PLL on CIFAR-10 with uniform candidate sets (q = 0.1).
_base_ = [
    '../../_base_/models/resnet18_32.py',
    '../../_base_/datasets/cifar10_partial.py',
    '../../_base_/methods/rgd_pll.py',
    '../../_base_/schedules/partial_500e.py',
    '../../_base_/default_runtime_cls.py',
]
classifier = dict(_base_.model, data_preprocessor=_base_.image_norm)
model = dict(
    _delete_=True,
    type='mmssl.PartialLabelClassifier',
    classifier=classifier,
    estimator=_base_.rgd_pll.estimator,
    semi_train_cfg=_base_.rgd_pll.semi_train_cfg)
optim_wrapper = dict(_base_.rgd_pll_surgery)
custom_hooks = [_base_.rgd_pll_hook]
