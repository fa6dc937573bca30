# One loss in a stock head, and nothing else; mmssl is not imported, only named.
_base_ = './supervised.py'
model = dict(
    decode_head=dict(
        loss_decode=[
            dict(type='CrossEntropyLoss', loss_name='loss_ce', loss_weight=0.5),
            dict(type='mmssl.OHEMCrossEntropyLoss', thresh=0.7, min_kept=100, loss_weight=0.5)
        ]))
