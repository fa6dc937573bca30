# The strong augmentation of the FixMatch family: three of 14 operations, drawn with replacement, each with a magnitude
# of its own, uniform in its range (what 'inf' means where magnitude_level is total_level), and all applied. Factors of
# color, contrast, brightness and sharpness are 1 + magnitude, in [0.05, 0.95]. What geometric operations leave empty is
# black. A square of gray, as large as the data set says, comes after it.
_never = dict(prob=1., random_negative_prob=0.)
_signed = dict(prob=1., random_negative_prob=0.5, pad_val=0)
randaugment = dict(
    type='mmssl.RandAugment',
    _scope_='mmpretrain',
    num_policies=3,
    magnitude_level=10,
    total_level=10,
    magnitude_std='inf',
    hparams=dict(),
    policies=[
        dict(type='mmssl.AutoContrast', prob=1.),
        dict(type='Brightness', magnitude_range=(-0.95, -0.05), **_never),
        dict(type='ColorTransform', magnitude_range=(-0.95, -0.05), **_never),
        dict(type='mmssl.Contrast', magnitude_range=(-0.95, -0.05), **_never),
        dict(type='mmssl.Equalize', prob=1.),
        dict(type='mmssl.AutoContrast', prob=0.),  # the identity
        # Rounded up, so 4 to 7 bits, each as often as the others: the whole part of a number in [4, 8).
        dict(type='Posterize', magnitude_range=(3, 7), prob=1.),
        dict(type='Rotate', magnitude_range=(0, 30), **_signed),
        dict(type='Sharpness', magnitude_range=(-0.95, -0.05), **_never),
        dict(type='Shear', magnitude_range=(0, 0.3), direction='horizontal', interpolation='nearest', **_signed),
        dict(type='Shear', magnitude_range=(0, 0.3), direction='vertical', interpolation='nearest', **_signed),
        dict(type='Solarize', magnitude_range=(0, 256), prob=1.),
        dict(type='Translate', magnitude_range=(0, 0.3), direction='horizontal', **_signed),
        dict(type='Translate', magnitude_range=(0, 0.3), direction='vertical', **_signed),
    ])
