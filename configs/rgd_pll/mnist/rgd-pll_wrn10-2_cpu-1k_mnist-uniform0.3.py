# RGD-PLL on MNIST with uniform candidate sets (q = 0.3), at CPU size.
_base_ = [
    '../../_base_/models/wrn10_2_cpu.py',
    '../../_base_/datasets/mnist_partial.py',
    '../../_base_/methods/rgd_pll.py',
    '../../_base_/schedules/cpu_1k_cls.py',
    '../../_base_/default_runtime_cls.py',
]
classifier = dict(_base_.model, data_preprocessor=_base_.image_norm)
model = dict(
    _delete_=True,
    type='mmssl.PartialLabelClassifier',
    classifier=classifier,
    estimator=_base_.rgd_pll.estimator,
    semi_train_cfg=dict(unsup_begin=200, unsup_ramp=200))
optim_wrapper = dict(**_base_.rgd_pll_surgery)
optim_wrapper.update(warmup=200, ramp=200)
custom_hooks = [_base_.rgd_pll_hook]
train_dataloader = dict(num_workers=1)
val_dataloader = dict(num_workers=1)
test_dataloader = dict(num_workers=1)
