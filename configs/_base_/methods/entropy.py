# The entropy of the prediction as a penalty, beside any other loss.
entropy_loss = dict(type='mmssl.EntropyLoss', loss_weight=0.05)
