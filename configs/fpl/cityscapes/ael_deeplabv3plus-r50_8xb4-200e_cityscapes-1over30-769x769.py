# AEL, DeepLabV3+ R-50, Cityscapes 1over30.
_base_ = './ael_deeplabv3plus-r50_8xb4-200e_cityscapes-1over8-769x769.py'
train_dataloader = dict(
    dataset=dict(
        sources=dict(
            labeled=dict(ann_file='splits/train_aug_labeled_1-30.txt'),
            unlabeled=dict(ann_file='splits/train_aug_unlabeled_1-30.txt'))))
train_cfg = dict(max_iters=35800)
param_scheduler = [dict(type='PolyLR', power=0.9, eta_min=0., begin=0, end=35800, by_epoch=False)]
