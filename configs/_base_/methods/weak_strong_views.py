# The last step of the labeled and of the unlabeled pipeline: a weak view, and a strong one with other colors.
weak_strong_branches = ['sup', 'unsup_weak', 'unsup_strong']
weak_strong_labeled = dict(type='mmssl.MultiBranch', branches=weak_strong_branches, sup=[dict(type='PackSegInputs')])
weak_strong_unlabeled = dict(
    type='mmssl.MultiBranch',
    branches=weak_strong_branches,
    unsup_weak=[dict(type='mmssl.PackSemiSegInputs')],
    unsup_strong=[dict(type='PhotoMetricDistortion'), dict(type='mmssl.PackSemiSegInputs')])
