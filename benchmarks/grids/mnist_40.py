"""LayerMatch, its parts and what it stands on, on MNIST with 40 labels at CPU size."""

_ROWS = {
    'supervised': 'Labels alone', 'fixmatch': 'FixMatch', 'freematch': 'FreeMatch',
    'freematch-grad-relu': 'Self-adaptive threshold + Grad-ReLU',
    'freematch-avg-clustering': 'Self-adaptive threshold + Avg-Clustering', 'layermatch': 'LayerMatch',
}  # fmt: skip
title = 'MNIST, 40 labels, accuracy (%) on the 10,000 test images'
rows = [
    dict(name=name, title=_title, config=f'configs/layermatch/mnist/{name}_wrn10-2_cpu-1k_mnist-40.py')
    for name, _title in _ROWS.items()
]
seeds = [0, 1, 2]
# Each seed labels other images.
seed_keys = ['train_dataloader.dataset.sources.labeled.seed']
metric = 'accuracy/top1'
curves = ['unsup_mask_ratio', 'unsup_pseudo_acc']
data_root = dict(env='MNIST_ROOT', default='data/mnist')
readme = 'configs/layermatch/README.md'
plots = 'configs/layermatch/mnist-40.png'
