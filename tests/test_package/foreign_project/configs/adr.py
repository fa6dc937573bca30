# ADR as one more entry of a stock head's losses; mmssl is not imported, only named.
_base_ = './supervised.py'
model = dict(
    decode_head=dict(
        loss_decode=[
            dict(type='CrossEntropyLoss', loss_name='loss_ce'),
            dict(type='mmssl.ADRLoss', topk=2, loss_weight=0.05)
        ]))
