# ADR on the response of unsupervised segmentation: gamma in [0.1, 0.5] and tau 7 or 9 in the paper (4.5).
adr_segments = dict(type='mmssl.ADRLoss', topk=7, loss_weight=0.1)
