# Online label smoothing + ADR, VGG, FER2013.
_base_ = [
    './ce_vgg_1xb64-300e_fer2013.py',
    '../../_base_/methods/online_label_smoothing.py',
    '../../_base_/methods/adr.py',
]
model = dict(
    head=dict(
        loss=dict(
            _delete_=True,
            type='mmssl.CombinedLoss',
            losses=[dict(_base_.ols_loss, num_classes=7), _base_.adr_loss])))
custom_hooks = [dict(_base_.ols_hook, interval=449)]
