# CAVL (ICLR 2022): the candidate of the largest class activation value is the label. Reads weak views.
cavl = dict(
    estimator=None,
    objective=dict(type='mmssl.CAVLLoss'),
    semi_train_cfg=dict(teacher=None))
cavl_hook = dict(type='mmssl.SampleTargetsHook')
