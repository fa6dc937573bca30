# RGD-PLL on CIFAR-10 with uniform candidate sets (q = 0.3), at CPU size.
_base_ = [
    '../../_base_/models/wrn10_2_cpu.py',
    '../../_base_/datasets/cifar10_images_partial.py',
    '../../_base_/methods/rgd_pll.py',
    '../../_base_/schedules/partial_cpu_800.py',
    '../../_base_/default_runtime_cls.py',
]
classifier = dict(_base_.model, data_preprocessor=_base_.image_norm)
semi_train_cfg = dict(_base_.rgd_pll.semi_train_cfg, unsup_begin=160, unsup_ramp=160)
model = dict(
    _delete_=True,
    type='mmssl.PartialLabelClassifier',
    classifier=classifier,
    estimator=_base_.rgd_pll.estimator,
    semi_train_cfg=semi_train_cfg)
optim_wrapper = dict(_base_.rgd_pll_surgery, warmup=160, ramp=160)
custom_hooks = [dict(_base_.rgd_pll_hook, momentum=0.02)]
val_cfg = _base_.held_out_validation
log_processor = dict(window_size=25, mean_pattern='.*(loss|time|target_acc|estimator_acc).*')
