# Supervised baseline, DeepLabV3+ R-50, Cityscapes 1over8.
_base_ = [
    '../../_base_/models/deeplabv3plus_r50_cityscapes.py',
    '../../_base_/datasets/cityscapes.py',
    '../../_base_/schedules/cps_40k.py',
    '../../_base_/default_runtime.py',
]
optim_wrapper = dict(optimizer=dict(lr=0.02))
train_cfg = dict(max_iters=44525)
param_scheduler = [dict(type='PolyLR', power=0.9, eta_min=0., begin=0, end=44525, by_epoch=False)]
