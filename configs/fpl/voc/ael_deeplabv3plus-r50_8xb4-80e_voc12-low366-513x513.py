# AEL, DeepLabV3+ R-50, VOC 2012 low366.
_base_ = './ael_deeplabv3plus-r50_8xb4-80e_voc12aug-1over8-513x513.py'
train_dataloader = dict(
    dataset=dict(
        sources=dict(
            labeled=dict(ann_file='splits/pseudoseg_labeled_1-4.txt'),
            unlabeled=dict(
                ann_file='splits/pseudoseg_unlabeled_1-4.txt',
                exclude='splits/pseudoseg_labeled_1-4.txt'))))
train_cfg = dict(max_iters=52880)
param_scheduler = [dict(type='PolyLR', power=0.9, eta_min=0., begin=0, end=52880, by_epoch=False)]
