# CutMix of CPS: two unlabeled images make one mixed image, and only mixed images enter the unsupervised loss.
cutmix = dict(type='mmssl.CutMix', num_boxes=3, area_range=(0.25, 0.5))
