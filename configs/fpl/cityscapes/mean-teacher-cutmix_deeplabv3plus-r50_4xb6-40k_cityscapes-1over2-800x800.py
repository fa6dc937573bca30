# Mean teacher + CutMix, DeepLabV3+ R-50, Cityscapes 1over2.
_base_ = './mean-teacher-cutmix_deeplabv3plus-r50_4xb6-40k_cityscapes-1over8-800x800.py'
train_dataloader = dict(
    dataset=dict(
        sources=dict(
            labeled=dict(ann_file='splits/train_aug_labeled_1-2.txt'),
            unlabeled=dict(ann_file='splits/train_aug_unlabeled_1-2.txt'))))
train_cfg = dict(max_iters=44400)
param_scheduler = [dict(type='PolyLR', power=0.9, eta_min=0., begin=0, end=44400, by_epoch=False)]
