# Cross pseudo supervision around the project's model, with FPL's loss and its diagnostics.
_base_ = [
    './_base_/models/fcn_own.py', './_base_/datasets/own_semi.py', './_base_/schedules/schedule_2.py',
    './_base_/default_runtime.py'
]
custom_imports = dict(imports=['mmssl', 'own_project'], allow_failed_imports=False)
model = dict(
    _delete_=True,
    type='mmssl.CrossPseudoSupervision',
    segmentor=_base_.model,
    # mmengine would give the model the project's top-level `data_preprocessor`, which knows no branches.
    data_preprocessor=dict(type='mmssl.MultiBranchDataPreprocessor', data_preprocessor=_base_.data_preprocessor),
    semi_train_cfg=dict(unsup_weight=1.5, unsup_loss=dict(type='mmssl.FPLLoss'), mix=dict(type='mmssl.CutMix')))
custom_hooks = [dict(type='mmssl.IterationSeedHook'), dict(type='mmssl.FPLDiagnosticsHook', interval=1)]
