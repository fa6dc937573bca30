# Mean teacher (NeurIPS 2017), the semi_train_cfg of mmssl.PseudoLabelClassifier: the softmax of a second weak view
# follows that of the student's moving average on the first one. The data needs that view as the branch `unsup_weak2`.
# An experiment adds unsup_ramp, published as 0.4 times its iterations. A decay of 0.999 is momentum=0.001.
mean_teacher_cls = dict(
    teacher='ema',
    teacher_mode='train',
    threshold=dict(type='mmssl.FixedThreshold', threshold=0.0),
    target='soft',
    unsup_loss=dict(type='mmssl.ConsistencyMSELoss'),
    unsup_weight=50.0,
    student_branch='unsup_weak2',
    concatenate=False,
    freeze_bn_on_unlabeled=True,
    normalize='batch')
mean_teacher_hook = dict(type='mmssl.MeanTeacherHook', momentum=0.001, warmup=False)
