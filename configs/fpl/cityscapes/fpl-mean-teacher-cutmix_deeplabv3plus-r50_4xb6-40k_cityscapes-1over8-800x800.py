# Mean teacher + CutMix + FPL, DeepLabV3+ R-50, Cityscapes 1over8.
_base_ = [
    './mean-teacher-cutmix_deeplabv3plus-r50_4xb6-40k_cityscapes-1over8-800x800.py',
    '../../_base_/methods/fpl.py',
]
model = dict(semi_train_cfg=dict(unsup_loss=_base_.fpl_loss))
