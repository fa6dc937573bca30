# UDA (NeurIPS 2020), the semi_train_cfg of mmssl.PseudoLabelClassifier: a strong view learns the sharpened
# probabilities of its weak view. Training signal annealing is off, as in the published tables of its successors; it is
# tsa=dict(schedule='linear', iterations=...).
uda = dict(
    threshold=dict(type='mmssl.FixedThreshold', threshold=0.8),
    target='soft',
    temperature=0.4,
    normalize='batch',
    tsa=None)
