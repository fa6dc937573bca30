# UniMatch's strong view of an image: other colors, the same pixels. Images are BGR here; the weights of gray are those
# of Pillow. These transforms need mmpretrain.
unimatch_view = [
    dict(
        type='RandomApply',
        prob=0.8,
        transforms=[
            dict(
                type='mmpretrain.ColorJitter', brightness=0.5, contrast=0.5, saturation=0.5, hue=0.25, backend='cv2'),
        ]),
    dict(type='RandomGrayscale', prob=0.2, keep_channels=True, channel_weights=(0.114, 0.587, 0.299)),
    dict(type='mmpretrain.GaussianBlur', magnitude_range=(0.1, 2.0), magnitude_std='inf', prob=0.5),
]
# The last step of the labeled and of the unlabeled pipeline: a weak and two strong views.
unimatch_branches = ['sup', 'unsup_weak', 'unsup_strong', 'unsup_strong2']
unimatch_labeled = dict(type='mmssl.MultiBranch', branches=unimatch_branches, sup=[dict(type='PackSegInputs')])
unimatch_unlabeled = dict(
    type='mmssl.MultiBranch',
    branches=unimatch_branches,
    unsup_weak=[dict(type='mmssl.PackSemiSegInputs')],
    unsup_strong=[*unimatch_view, dict(type='mmssl.PackSemiSegInputs')],
    unsup_strong2=[*unimatch_view, dict(type='mmssl.PackSemiSegInputs')])
