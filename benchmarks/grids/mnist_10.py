"""LayerMatch, its parts and what it stands on, on MNIST with 10 labels at CPU size."""

title = 'MNIST, 10 labels, accuracy (%) on the 10,000 test images'
config = 'configs/layermatch/mnist/{name}_wrn10-2_cpu-1k_mnist-10.py'
rows = [
    dict(name='supervised', title='Labels alone'),
    dict(name='fixmatch', title='FixMatch'),
    dict(name='freematch', title='FreeMatch'),
    dict(name='freematch-grad-relu', title='Self-adaptive threshold + Grad-ReLU'),
    dict(name='freematch-avg-clustering', title='Self-adaptive threshold + Avg-Clustering'),
    dict(name='layermatch', title='LayerMatch'),
]
seeds = [0, 1, 2]
# Each seed labels other images.
seed_keys = ['train_dataloader.dataset.sources.labeled.seed']
metric = 'accuracy/top1'
curves = ['unsup_mask_ratio', 'unsup_pseudo_acc']
data_root = dict(env='MNIST_ROOT', default='data/mnist')
readme = 'configs/layermatch/README.md'
plots = 'configs/layermatch/mnist-10.png'
