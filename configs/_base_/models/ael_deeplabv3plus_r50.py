# AEL on VOC as released. The network: output stride 8 with multi-grid, an auxiliary head, hard-example cross entropy
# with 100,000 pixels kept on each GPU. The teacher has the statistics of its own forwards. What is a slip there is not
# repeated: labels padded with 0, a bank for each process, the ids of Cityscapes' classes on VOC. Every unlabeled image
# is mixed, not one of the two of a GPU, so that training runs on a single GPU too (batch normalization needs two).
_base_ = './mean_teacher_deeplabv3plus_r50.py'
data_preprocessor = dict(size=(513, 513))
model = dict(
    type='mmssl.AELSegmentor',
    data_preprocessor=dict(data_preprocessor=data_preprocessor),
    segmentor=dict(
        data_preprocessor=data_preprocessor,
        # Multi-grid 2, 2, 4; the first block has half the dilation of the others.
        backbone=dict(strides=(1, 2, 1, 1), dilations=(1, 1, 2, 4), multi_grid=(4, 8, 16), contract_dilation=True),
        decode_head=dict(
            dilations=(1, 12, 24, 36),
            c1_channels=256,
            dropout_ratio=0.1,
            loss_decode=dict(_delete_=True, type='mmssl.OHEMCrossEntropyLoss', thresh=0.7, min_kept=100000)),
        auxiliary_head=dict(
            type='FCNHead',
            in_channels=1024,
            in_index=2,
            channels=256,
            num_convs=1,
            concat_input=False,
            dropout_ratio=0.1,
            num_classes=21,
            norm_cfg=_base_.norm_cfg,
            align_corners=True,
            loss_decode=dict(type='mmssl.OHEMCrossEntropyLoss', thresh=0.7, min_kept=100000, loss_weight=0.4)),
        test_cfg=dict(_delete_=True, mode='whole')),
    semi_train_cfg=dict(
        teacher_mode='train',
        unsup_loss=dict(type='mmssl.HardPseudoLabelLoss', threshold=0.7),
        mix=dict(type='mmssl.AdaptiveCutMix', component_thresh=0.03, presence_thresh=0.03),
        copy_paste=dict(type='mmssl.AdaptiveCopyPaste', num_draws=1, exclude_classes=['background'])))
