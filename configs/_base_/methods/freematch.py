# FreeMatch (ICLR 2023), the semi_train_cfg of mmssl.PseudoLabelClassifier: thresholds that follow the model's own
# confidence, and the fairness loss with the weight of the released configs. A decay of 0.999 is momentum=0.001.
freematch = dict(
    threshold=dict(type='mmssl.SelfAdaptiveThreshold', momentum=0.001),
    fairness_weight=0.001,
    target='hard',
    normalize='batch')
