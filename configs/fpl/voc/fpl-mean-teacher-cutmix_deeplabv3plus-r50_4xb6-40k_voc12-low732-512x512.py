# Mean teacher + CutMix + FPL, DeepLabV3+ R-50, VOC 2012 low732.
_base_ = ['./mean-teacher-cutmix_deeplabv3plus-r50_4xb6-40k_voc12-low732-512x512.py', '../../_base_/methods/fpl.py']
model = dict(semi_train_cfg=dict(unsup_loss=_base_.fpl_loss))
