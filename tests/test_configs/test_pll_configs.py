"""Every config of partial labels parses with the recipe; surgery fits the model; the files are the generator's."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('mmpretrain')
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from mmengine.registry import init_default_scope
from mmpretrain.registry import MODELS
from proof_harness.grid import load_grid

from mmssl.utils.checks.hooks import check_required_hooks
from mmssl.utils.checks.report import Report

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / 'configs/rgd_pll'
CONFIGS = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob('*.py')
                 if path.parent.name not in ('annotators', 'camvid'))
CLASSES = {'mnist': 10, 'cifar10': 10, 'cifar100': 100, 'svhn': 10, 'fashion_mnist': 10}
# Training images, 500 epochs of which are rounded up to whole batches of 256.
IMAGES = {'cifar10': 50000, 'cifar100': 50000, 'svhn': 73257, 'fashion_mnist': 60000}


def load(name: str) -> Config:
    return Config.fromfile(str(FOLDER / name), import_custom_modules=False)


def generator() -> Any:
    spec = importlib.util.spec_from_file_location('pll_configs', ROOT / 'tools/dev/write_pll_configs.py')
    module = importlib.util.module_from_spec(spec)
    sys.modules['pll_configs'] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize('name', CONFIGS)
def test_config_is_consistent(name: str) -> None:
    config = load(name)
    folder, stem = name.removesuffix('.py').split('/')
    method, _, batch, data = stem.split('_', 3)
    setting = data.removeprefix(f'{folder}-')
    assert config.default_scope == 'mmpretrain' and config.model.type == 'mmssl.PartialLabelClassifier'
    assert config.model.classifier.head.num_classes == CLASSES[folder]
    source = config.train_dataloader.dataset.sources.labeled
    assert source.type == 'mmssl.PartialLabelDataset' and source.candidate_file.endswith(f'/{setting}_seed{{seed}}.txt')
    iterations = config.train_cfg.max_iters
    assert iterations == config.param_scheduler[0].T_max == config.param_scheduler[0].end
    assert config.train_dataloader.batch_size == config.auto_scale_lr.base_batch_size
    optimizer = config.optim_wrapper.optimizer
    lr = 0.1 if folder == 'cifar100' else 0.05
    assert optimizer == dict(type='SGD', lr=lr, momentum=0.9, weight_decay=1e-3)
    if 'cpu' in batch:
        held_out = config.val_cfg.held_out_dataloader.dataset
        assert (held_out.candidate_file, held_out.held_out, held_out.seed) == (
            source.candidate_file, source.held_out, source.seed)
        assert held_out.part == 'held_out' and source.get('part', 'train') == 'train'
    else:
        assert iterations == -(-IMAGES[folder] // 256) * 500 and config.val_cfg.type == 'ValLoop'
        assert config.model.classifier.backbone == dict(type='ResNet_CIFAR', depth=18)
    if method.startswith('rgd-pll'):
        options, wrapper = config.model.semi_train_cfg, config.optim_wrapper
        assert wrapper.type == 'mmssl.RGDOptimWrapper'
        assert (wrapper.warmup, wrapper.ramp) == (options.unsup_begin, options.unsup_ramp)
    else:
        assert config.optim_wrapper.type == 'OptimWrapper'
    report = Report()
    init_default_scope('mmpretrain')
    check_required_hooks(config, report)
    assert not report.errors, report.errors
    images = source.dataset.dataset if 'cpu' in batch else source.dataset
    branches = images.pipeline[-1].branches
    assert list(MODELS.get('mmssl.PartialLabelClassifier').branches_read(config.model)) == branches


@pytest.mark.parametrize('name', [
    'mnist/rgd-pll_wrn10-2_cpu-500_mnist-uniform0.3.py', 'cifar100/rgd-pll_resnet18_1xb256-500e_cifar100-uniform0.1.py',
    'cifar10/rgd-pll-no-teacher_wrn10-2_cpu-800_cifar10-instance0.4.py',
    'cifar10/rgd-pll-soft-auxiliary_resnet18_1xb256-500e_cifar10-instance0.4.py',
])  # yapf: disable
def test_surgery_fits_the_classifier(name: str) -> None:
    config = load(name)
    init_default_scope('mmpretrain')
    model = MODELS.build(config.model)
    wrapper = build_optim_wrapper(model, config.optim_wrapper)
    wrapper.initialize_count_status(model, 0, config.train_cfg.max_iters)
    assert {id(p) for p in wrapper._layout.shared} == {id(p) for p in model.student.backbone.parameters()}
    assert config.optim_wrapper.optimizer.type == 'SGD'


def test_an_ablation_changes_one_thing() -> None:
    def text(method: str) -> dict[str, Any]:
        return load(f'cifar10/{method}_resnet18_1xb256-500e_cifar10-instance0.4.py').to_dict()

    whole = text('rgd-pll')
    for method in generator().ABLATIONS:
        part = text(method)
        changed = {key for key in whole if part[key] != whole[key]}
        assert changed and changed <= {'model', 'optim_wrapper', 'custom_hooks'}, (method, changed)


@pytest.mark.parametrize('path', sorted((FOLDER / 'annotators').glob('*.py')), ids=lambda path: path.stem)
def test_annotators_learn_from_all_labels(path: Path) -> None:
    config = Config.fromfile(str(path), import_custom_modules=False)
    source = config.train_dataloader.dataset.sources.labeled
    assert 'per_class' not in source and source.data_root == config.data_root
    assert config.model.type == 'ImageClassifier' and config.val_dataloader.dataset.pipeline


def test_the_files_are_those_of_the_generator() -> None:
    done = subprocess.run([sys.executable, str(ROOT / 'tools/dev/write_pll_configs.py'), '--check'],
                          capture_output=True, text=True)  # yapf: disable
    assert done.returncode == 0, done.stdout


def test_every_cell_of_the_tables_is_there() -> None:
    module = generator()
    cells = [(experiment.folder, setting) for experiment in module.EXPERIMENTS for setting in experiment.settings
             if not experiment.cpu]
    assert len(cells) == len(set(cells)) == 4 * 5 and len(module.ABLATIONS) == 7
    cpu = [setting for experiment in module.EXPERIMENTS if experiment.cpu for setting in experiment.settings]
    rows = len([method for method in module.CPU_METHODS if method in module.METHODS]) + len(module.CPU_ABLATIONS)
    assert len(CONFIGS) == 20 * len(module.METHODS) + 7 + len(cpu) * rows and len(cpu) == 6


@pytest.mark.parametrize('path', sorted((ROOT / 'benchmarks/grids').glob('*_pll_*.py')), ids=lambda path: path.stem)
def test_grids_give_their_seed_to_both_parts(path: Path) -> None:
    grid = load_grid(path.stem, ROOT)
    config = Config.fromfile(str(ROOT / grid.rows[0].config), import_custom_modules=False)
    for key in grid.seed_keys:
        node = config
        for word in key.split('.'):
            node = node[word]
        assert node == 0
    assert len(grid.seed_keys) == 2 and grid.criterion == 'candidates/covering_rate'
