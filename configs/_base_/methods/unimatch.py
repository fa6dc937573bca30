# UniMatch (CVPR 2023), the semi_train_cfg of mmssl.MeanTeacherSegmentor: two strong views, and the weak one with
# dropped features, learn the labels of the weak view where it is sure of them. The teacher is the student itself, which
# mmssl.MeanTeacherHook copies after each step.
unimatch_hook = dict(type='mmssl.MeanTeacherHook', momentum=1.0, buffers='copy')
unimatch = dict(
    unsup_loss=dict(type='mmssl.HardPseudoLabelLoss', threshold=0.95),
    # One box for two neighbours of the batch, which exchange it; the released code takes the donors from a second pass
    # over the unlabeled images.
    mix=dict(
        type='mmssl.CutMix',
        num_boxes=1,
        area_range=(0.02, 0.4),
        aspect_range=(0.3, 1 / 0.3),
        prob=0.5,
        both_ways=True),
    strong_branches=('unsup_strong', 'unsup_strong2'),
    strong_weights=(0.25, 0.25),
    # The unlabeled images of a unit of the sampler.
    feature_perturbation=dict(type='mmssl.FeatureDropout', drop_prob=0.5, images_per_unit=2),
    feature_weight=0.5,
    # The labels come from the statistics of the batch, as published.
    teacher_mode='train',
    ignore_padding=True)
