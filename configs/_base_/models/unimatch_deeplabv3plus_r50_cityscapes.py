# DeepLabV3+ as UniMatch uses it on Cityscapes: output stride 8 with multi-grid, crops of 769, 100,000 hard pixels kept
# for each of the 2 labeled images of a GPU.
_base_ = './mean_teacher_deeplabv3plus_r50_cityscapes.py'
data_preprocessor = dict(size=(769, 769))
model = dict(
    data_preprocessor=dict(data_preprocessor=data_preprocessor),
    segmentor=dict(
        data_preprocessor=data_preprocessor,
        # Multi-grid 2, 2, 4; the first block has half the dilation of the others.
        backbone=dict(strides=(1, 2, 1, 1), dilations=(1, 1, 2, 4), multi_grid=(4, 8, 16), contract_dilation=True),
        decode_head=dict(dilations=(1, 12, 24, 36), loss_decode=dict(min_kept=200000)),
        test_cfg=dict(crop_size=(769, 769), stride=(512, 512))),
    semi_test_cfg=dict(predict_on='student'))
