# DeepLabV3+ as UniMatch uses it on VOC: output stride 16 without multi-grid, crops of 321, evaluated on whole images.
_base_ = './mean_teacher_deeplabv3plus_r50.py'
data_preprocessor = dict(size=(321, 321))
model = dict(
    data_preprocessor=dict(data_preprocessor=data_preprocessor),
    segmentor=dict(
        data_preprocessor=data_preprocessor,
        backbone=dict(multi_grid=None, contract_dilation=True),
        test_cfg=dict(_delete_=True, mode='whole')),
    semi_test_cfg=dict(predict_on='student'))
