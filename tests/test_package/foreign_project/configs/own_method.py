# A method of the project's own with FPL's loss.
_base_ = [
    './_base_/models/fcn_own.py', './_base_/datasets/own_semi.py', './_base_/schedules/schedule_2.py',
    './_base_/default_runtime.py'
]
custom_imports = dict(imports=['own_project'], allow_failed_imports=False)
model = dict(
    type='OwnSemiSegmentor',
    unsup_loss=dict(type='mmssl.FPLLoss', cum_prob=0.9),
    data_preprocessor=dict(
        _delete_=True, type='mmssl.MultiBranchDataPreprocessor', data_preprocessor=_base_.data_preprocessor))
