# The project before it knew mmssl.
_base_ = [
    './_base_/models/fcn_own.py', './_base_/datasets/own.py', './_base_/schedules/schedule_2.py',
    './_base_/default_runtime.py'
]
custom_imports = dict(imports=['own_project'], allow_failed_imports=False)
