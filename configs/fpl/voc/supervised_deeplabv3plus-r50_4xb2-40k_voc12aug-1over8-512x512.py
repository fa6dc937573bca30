# Supervised baseline, DeepLabV3+ R-50, VOC 2012 1over8.
_base_ = [
    '../../_base_/models/deeplabv3plus_r50.py',
    '../../_base_/datasets/voc2012.py',
    '../../_base_/schedules/cps_40k.py',
    '../../_base_/default_runtime.py',
]
train_cfg = dict(max_iters=39338)
param_scheduler = [dict(type='PolyLR', power=0.9, eta_min=0., begin=0, end=39338, by_epoch=False)]
