# CPS + CutMix, DeepLabV3+ R-50, VOC 2012 low92.
_base_ = ['./cps_deeplabv3plus-r50_4xb4-40k_voc12-low92-512x512.py', '../../_base_/methods/cutmix.py']
model = dict(semi_train_cfg=dict(unsup_weight=0.1, unsup_on='unlabeled', mix=_base_.cutmix))
# Two unlabeled images make a mixed one.
train_dataloader = dict(batch_size=6, sampler=dict(source_ratio=[1, 2]))
auto_scale_lr = dict(base_batch_size=24)
