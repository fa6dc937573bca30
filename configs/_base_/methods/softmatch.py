# SoftMatch (ICLR 2023), the semi_train_cfg of mmssl.PseudoLabelClassifier: every pseudo label counts, by its
# confidence. Alignment to uniform classes changes the confidence alone, not the class. A decay of 0.999 is
# momentum=0.001.
softmatch = dict(
    threshold=dict(type='mmssl.SoftMatchWeight', momentum=0.001, n_sigma=2),
    alignment=dict(type='mmssl.DistributionAlignment', target='uniform', momentum=0.001, apply_to='confidence'),
    target='hard',
    normalize='batch')
