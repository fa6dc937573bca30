# CRDPLL (ICML 2022): low probability outside the sets, and all views alike. The weight of the latter rises over half of
# the training.
crdpll = dict(
    estimator=None,
    objective=dict(type='mmssl.CRDPLLLoss'),
    semi_train_cfg=dict(teacher=None))
crdpll_hook = dict(type='mmssl.SampleTargetsHook')
