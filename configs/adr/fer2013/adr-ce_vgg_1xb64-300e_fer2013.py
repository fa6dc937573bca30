# Cross entropy + ADR, VGG, FER2013.
_base_ = ['./ce_vgg_1xb64-300e_fer2013.py', '../../_base_/methods/adr.py']
model = dict(
    head=dict(
        loss=dict(
            _delete_=True,
            type='mmssl.CombinedLoss',
            losses=[dict(type='CrossEntropyLoss'), _base_.adr_loss])))
