# RGD-PLL on CIFAR-100 with uniform candidate sets (q = 0.01).
_base_ = [
    '../../_base_/models/resnet18_32.py',
    '../../_base_/datasets/cifar100_partial.py',
    '../../_base_/methods/rgd_pll.py',
    '../../_base_/schedules/partial_500e.py',
    '../../_base_/default_runtime_cls.py',
]
classifier = dict(_base_.model, data_preprocessor=_base_.image_norm, head=dict(_base_.model.head, num_classes=100))
semi_train_cfg = dict(_base_.rgd_pll.semi_train_cfg, unsup_begin=3920)
model = dict(
    _delete_=True,
    type='mmssl.PartialLabelClassifier',
    classifier=classifier,
    estimator=_base_.rgd_pll.estimator,
    semi_train_cfg=semi_train_cfg)
optim_wrapper = dict(_base_.rgd_pll_surgery, warmup=3920, optimizer=dict(lr=0.1))
custom_hooks = [_base_.rgd_pll_hook]
