# AEL + FPL, DeepLabV3+ R-50, Cityscapes 1over16.
_base_ = ['./ael_deeplabv3plus-r50_8xb4-200e_cityscapes-1over16-769x769.py', '../../_base_/methods/fpl.py']
model = dict(semi_train_cfg=dict(unsup_loss=dict(_delete_=True, **_base_.fpl_loss)))
