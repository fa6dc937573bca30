# PRODEN (ICML 2020), and RC (NeurIPS 2020) of the same loss: targets follow the model. Reads weak views.
proden = dict(
    estimator=None,
    objective=dict(type='mmssl.PRODENLoss'),
    semi_train_cfg=dict(teacher=None))
proden_hook = dict(type='mmssl.SampleTargetsHook')
