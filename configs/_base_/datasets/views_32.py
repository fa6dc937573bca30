# Weak and strong views of 32 x 32 pixels. The side of the gray square is uniform in 0 to half of the image, its color
# (125, 123, 114) in RGB. It is rounded down, and the reference draws one pixel more at the far edge: hence 1 to 17.
_base_ = ['./cls_loaders.py', '../methods/randaugment.py']
weak = [dict(type='mmssl.RandomPadCrop', crop_size=32, padding=4, padding_mode='reflect', flip_prob=0.5)]
strong = [
    *weak,
    _base_.randaugment,
    dict(type='Cutout', magnitude_range=(1, 17), magnitude_std='inf', prob=1., pad_val=(114, 123, 125)),
]
