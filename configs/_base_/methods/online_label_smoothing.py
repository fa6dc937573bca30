# Online label smoothing: half the cross entropy of the label, half that of what the network says, on average, of images
# of this class that it gets right. `num_classes` is the head's, `interval` the iterations of an epoch.
ols_loss = dict(type='mmssl.OnlineLabelSmoothLoss')
ols_hook = dict(type='mmssl.OnlineLabelSmoothHook')
