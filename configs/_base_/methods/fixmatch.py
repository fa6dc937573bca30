# FixMatch (NeurIPS 2020), the semi_train_cfg of mmssl.PseudoLabelClassifier: a strong view learns the class of its
# weak view where that is sure of it. The mean is over all unlabeled images of the batch.
fixmatch = dict(threshold=dict(type='mmssl.FixedThreshold', threshold=0.95), target='hard', normalize='batch')
