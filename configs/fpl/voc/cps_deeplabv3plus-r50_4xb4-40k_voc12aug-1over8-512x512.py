# CPS, DeepLabV3+ R-50, VOC 2012 1over8.
_base_ = [
    '../../_base_/models/cps_deeplabv3plus_r50.py',
    '../../_base_/datasets/voc2012_semi.py',
    '../../_base_/schedules/cps_40k.py',
    '../../_base_/default_runtime.py',
]
model = dict(semi_train_cfg=dict(unsup_weight=1.5, unsup_on='all'))
auto_scale_lr = dict(base_batch_size=16)
train_cfg = dict(max_iters=39338)
param_scheduler = [dict(type='PolyLR', power=0.9, eta_min=0., begin=0, end=39338, by_epoch=False)]
