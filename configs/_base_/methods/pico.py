# PiCO (ICLR 2022): contrastive learning whose prototypes make the targets; the momentum encoder is the teacher. Both
# hooks are needed: custom_hooks = [*_base_.pico_hook].
pico = dict(
    estimator=None,
    objective=dict(type='mmssl.PiCOLoss'),
    semi_train_cfg=dict(teacher='ema'))
pico_hook = [
    dict(type='mmssl.MeanTeacherHook', momentum=0.001, warmup=False),
    dict(type='mmssl.SampleTargetsHook'),
]
