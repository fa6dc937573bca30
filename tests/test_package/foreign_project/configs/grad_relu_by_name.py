# A layer of a stock segmentor that learns from one of its losses; mmssl is not imported, only named.
_base_ = './supervised.py'
model = dict(
    decode_head=dict(
        loss_decode=[
            dict(type='CrossEntropyLoss', loss_name='loss_ce'),
            dict(type='mmssl.ADRLoss', loss_weight=0.05)
        ]))
custom_hooks = [
    dict(type='mmssl.GradReLUHook', layers=['decode_head.conv_seg'], supervised=['decode.loss_ce'])
]
