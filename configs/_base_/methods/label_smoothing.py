# Label smoothing of mmpretrain: the target is 0.9 times the label plus 0.1 over the classes.
label_smoothing = dict(type='LabelSmoothLoss', label_smooth_val=0.1, mode='original')
