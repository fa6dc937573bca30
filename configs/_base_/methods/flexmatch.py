# FlexMatch (NeurIPS 2021), the semi_train_cfg of mmssl.PseudoLabelClassifier: FixMatch with lower thresholds for
# classes that are learned less. The hook tells the threshold how many unlabeled images there are.
flexmatch = dict(
    threshold=dict(type='mmssl.FlexMatchThreshold', threshold=0.95, warmup=True), target='hard', normalize='batch')
flexmatch_hook = dict(type='mmssl.FlexMatchHook')
