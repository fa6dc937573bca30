# UniMatch + FPL on CamVid 1/8, at CPU size.
_base_ = ['./unimatch_resnet18w16_1xb8-2k_camvid-1over8.py', '../../_base_/methods/fpl.py']
model = dict(semi_train_cfg=dict(unsup_loss=dict(_delete_=True, **_base_.fpl_loss)))
