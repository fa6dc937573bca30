# Gradient surgery between the two heads of a stock segmentor; the model stays as it is.
_base_ = './supervised.py'
model = dict(
    auxiliary_head=dict(
        type='FCNHead',
        in_channels=8,
        in_index=0,
        channels=8,
        num_convs=1,
        concat_input=False,
        num_classes=4,
        loss_decode=dict(type='CrossEntropyLoss', loss_weight=0.4)))
optim_wrapper = dict(type='mmssl.RGDOptimWrapper', primary=['decode.*'], auxiliary=['aux.*'], shared=['backbone'])
