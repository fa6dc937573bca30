# Pseudo labels (Lee, 2013), the semi_train_cfg of mmssl.PseudoLabelClassifier: the weak view learns its own class
# where it is sure of it; BatchNorm keeps its running statistics in that forward. An experiment adds unsup_ramp,
# published as 0.4 times its iterations. It reads no strong view: the data needs `sup` and `unsup_weak` alone.
pseudo_label = dict(
    threshold=dict(type='mmssl.FixedThreshold', threshold=0.95),
    target='hard',
    student_branch='unsup_weak',
    concatenate=False,
    freeze_bn_on_unlabeled=True,
    normalize='batch')
