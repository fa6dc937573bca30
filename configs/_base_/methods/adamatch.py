# AdaMatch (ICLR 2022), the semi_train_cfg of mmssl.PseudoLabelClassifier: the threshold is relative to the confidence
# on the labeled images of the batch, and the pseudo labels are aligned to the predictions on labeled images. Without
# the random interpolation of logits, as in the code base of the published tables. A decay of 0.999 is momentum=0.001.
adamatch = dict(
    threshold=dict(type='mmssl.AdaMatchThreshold', threshold=0.95),
    alignment=dict(type='mmssl.DistributionAlignment', target='labeled', momentum=0.001, apply_to='all'),
    target='hard',
    normalize='batch')
