# UniMatch + FPL, DeepLabV3+ R-50, VOC 2012 1over16.
_base_ = ['./unimatch_deeplabv3plus-r50_4xb4-80e_voc12aug-1over16-321x321.py', '../../_base_/methods/fpl.py']
model = dict(semi_train_cfg=dict(unsup_loss=dict(_delete_=True, **_base_.fpl_loss)))
