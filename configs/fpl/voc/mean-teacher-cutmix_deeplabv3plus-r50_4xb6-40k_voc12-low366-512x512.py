# Mean teacher + CutMix, DeepLabV3+ R-50, VOC 2012 low366.
_base_ = './mean-teacher-cutmix_deeplabv3plus-r50_4xb6-40k_voc12aug-1over8-512x512.py'
train_dataloader = dict(
    dataset=dict(
        sources=dict(
            labeled=dict(ann_file='splits/pseudoseg_labeled_1-4.txt'),
            unlabeled=dict(
                ann_file='splits/pseudoseg_unlabeled_1-4.txt',
                exclude='splits/pseudoseg_labeled_1-4.txt'))))
train_cfg = dict(max_iters=39660)
param_scheduler = [dict(type='PolyLR', power=0.9, eta_min=0., begin=0, end=39660, by_epoch=False)]
