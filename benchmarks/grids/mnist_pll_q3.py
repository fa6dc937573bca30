"""RGD-PLL, its parts and baselines, on MNIST with uniform candidates, q = 0.3, at CPU size."""

title = 'MNIST, uniform candidates, q = 0.3, accuracy (%) on the 10,000 test images'
config = 'configs/rgd_pll/mnist/{name}_wrn10-2_cpu-500_mnist-uniform0.3.py'
rows = [
    dict(name='cc', title='CC'),
    dict(name='proden', title='PRODEN'),
    dict(name='rgd-pll', title='RGD-PLL'),
    dict(name='rgd-pll-no-teacher', title='without the teacher'),
    dict(name='rgd-pll-no-entropy-weight', title='without entropy weights'),
    dict(name='rgd-pll-no-projection', title='without the projection'),
    dict(name='rgd-pll-no-balance', title='without the norm balance'),
    dict(name='rgd-pll-no-soft-loss', title='without the soft loss'),
]
seeds = [0, 1, 2]
# Each seed has candidate sets of its own, and holds out other images.
seed_keys = [
    'train_dataloader.dataset.sources.labeled.seed', 'val_cfg.held_out_dataloader.dataset.seed',
]  # yapf: disable
metric = 'accuracy/top1'
criterion = 'candidates/covering_rate'
curves = ['target_acc', 'surgery_conflict']
data_root = dict(env='MNIST_ROOT', default='data/mnist')
path_variables = ['MNIST_CANDIDATES']
readme = 'configs/rgd_pll/README.md'
plots = 'configs/rgd_pll/mnist-q3.png'
