# CC (NeurIPS 2020): the probability of the candidate set as a whole. Reads weak views.
cc = dict(
    estimator=None,
    objective=dict(type='mmssl.CCLoss'),
    semi_train_cfg=dict(teacher=None))
