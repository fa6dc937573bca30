# LWS (ICML 2021): leveraged weighted loss; the paper's beta is 1 or 2. Reads weak views.
lws = dict(
    estimator=None,
    objective=dict(type='mmssl.LWSLoss', beta=1., kind='sigmoid'),
    semi_train_cfg=dict(teacher=None))
lws_hook = dict(type='mmssl.SampleTargetsHook')
