# UniMatch, DeepLabV3+ R-50, Cityscapes 1over4.
_base_ = './unimatch_deeplabv3plus-r50_4xb4-240e_cityscapes-1over8-769x769.py'
train_dataloader = dict(
    dataset=dict(
        sources=dict(
            labeled=dict(ann_file='splits/train_aug_labeled_1-4.txt'),
            unlabeled=dict(ann_file='splits/train_aug_unlabeled_1-4.txt'))))
train_cfg = dict(max_iters=66720)
param_scheduler = [dict(type='PolyLR', power=0.9, eta_min=0., begin=0, end=66720, by_epoch=False)]
