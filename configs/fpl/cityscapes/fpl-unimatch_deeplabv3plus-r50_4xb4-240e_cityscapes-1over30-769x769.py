# UniMatch + FPL, DeepLabV3+ R-50, Cityscapes 1over30.
_base_ = ['./unimatch_deeplabv3plus-r50_4xb4-240e_cityscapes-1over30-769x769.py', '../../_base_/methods/fpl.py']
model = dict(semi_train_cfg=dict(unsup_loss=dict(_delete_=True, **_base_.fpl_loss)))
