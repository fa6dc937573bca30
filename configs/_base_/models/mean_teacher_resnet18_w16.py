_base_ = './resnet18_w16.py'
model = dict(
    _delete_=True,
    type='mmssl.MeanTeacherSegmentor',
    data_preprocessor=dict(type='mmssl.MultiBranchDataPreprocessor', data_preprocessor=_base_.data_preprocessor),
    segmentor=_base_.model)
