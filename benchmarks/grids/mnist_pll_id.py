"""RGD-PLL, its parts and baselines, on MNIST with instance-dependent candidates, rate 0.4, at CPU size."""

_ROWS = {
    'cc': 'CC', 'proden': 'PRODEN', 'rgd-pll': 'RGD-PLL',
    'rgd-pll-no-teacher': 'without the teacher', 'rgd-pll-no-entropy-weight': 'without entropy weights',
    'rgd-pll-no-projection': 'without the projection', 'rgd-pll-no-balance': 'without the norm balance',
    'rgd-pll-no-soft-loss': 'without the soft loss',
}  # fmt: skip
title = 'MNIST, instance-dependent candidates, rate 0.4, accuracy (%) on the 10,000 test images'
rows = [
    dict(name=name, title=_title, config=f'configs/rgd_pll/mnist/{name}_wrn10-2_cpu-500_mnist-instance0.4.py')
    for name, _title in _ROWS.items()
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
plots = 'configs/rgd_pll/mnist-id.png'
