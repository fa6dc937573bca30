# Mean teacher around the project's model, each sub-model validated, with what mmssl's own tool would add.
_base_ = [
    './_base_/models/fcn_own.py', './_base_/datasets/own_semi.py', './_base_/schedules/schedule_2.py',
    './_base_/default_runtime.py'
]
custom_imports = dict(imports=['own_project'], allow_failed_imports=False)
model = dict(
    _delete_=True,
    type='mmssl.MeanTeacherSegmentor',
    segmentor=_base_.model,
    data_preprocessor=dict(type='mmssl.MultiBranchDataPreprocessor', data_preprocessor=_base_.data_preprocessor))
custom_hooks = [dict(type='mmssl.MeanTeacherHook', momentum=0.001), dict(type='mmssl.IterationSeedHook')]
train_cfg = dict(type='mmssl.ResumableIterBasedTrainLoop')
val_cfg = dict(type='mmssl.SubModelValLoop')
default_hooks = dict(checkpoint=dict(type='mmssl.AtomicCheckpointHook'))
