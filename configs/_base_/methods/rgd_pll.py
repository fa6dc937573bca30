# RGD-PLL: partial labels with a momentum teacher, a reliability estimator, and gradient surgery between the two.
# Warm-up and ramp are for 500 epochs of 196 iterations (50,000 images, batch 256): 10 and 40 epochs. The form is ours;
# only a summary of the paper is known.
rgd_pll = dict(
    estimator=dict(type='mmssl.ReliabilityEstimator', embed_dims=128),
    semi_train_cfg=dict(unsup_weight=1., unsup_begin=1960, unsup_ramp=7840))
rgd_pll_hook = dict(type='mmssl.MeanTeacherHook', momentum=0.001)
rgd_pll_surgery = dict(
    type='mmssl.RGDOptimWrapper',
    primary=['prediction_loss', 'soft_loss'],
    auxiliary=['reliability_loss'],
    shared=['student.backbone'],
    reliability='reliability',
    warmup=1960,
    ramp=7840)
