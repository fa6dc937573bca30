# AEL + FPL on CamVid 1/8, at CPU size.
_base_ = ['./ael_resnet18w16_1xb12-2k_camvid-1over8.py', '../../_base_/methods/fpl.py']
model = dict(semi_train_cfg=dict(unsup_loss=_base_.fpl_loss))
