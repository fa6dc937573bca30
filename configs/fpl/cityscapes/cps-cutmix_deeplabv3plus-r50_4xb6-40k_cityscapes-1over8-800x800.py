# CPS + CutMix, DeepLabV3+ R-50, Cityscapes 1over8.
_base_ = ['./cps_deeplabv3plus-r50_4xb4-40k_cityscapes-1over8-800x800.py', '../../_base_/methods/cutmix.py']
model = dict(semi_train_cfg=dict(unsup_weight=5.0, unsup_on='unlabeled', mix=_base_.cutmix))
# Two unlabeled images make a mixed one.
train_dataloader = dict(batch_size=6, sampler=dict(source_ratio=[1, 2]))
auto_scale_lr = dict(base_batch_size=24)
