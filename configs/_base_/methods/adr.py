# Adaptive discriminative regularization, beside any other loss. Gamma (`loss_weight`) and tau (`topk`) belong together:
# the paper names gamma between 0.01 and 0.1, and a tau in proportion to the classes. None: a tenth of them, at most 10.
adr_loss = dict(type='mmssl.ADRLoss', topk=None, loss_weight=0.05)
