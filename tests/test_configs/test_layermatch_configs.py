"""Every config of LayerMatch and its family parses with the published settings; one of each kind takes a step."""

import importlib.util
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('mmpretrain')
import mmengine.config.config as config_module
import mmengine.runner.runner as runner_module
import numpy as np
import torch
from mmengine.config import Config
from mmengine.registry import HOOKS, init_default_scope
from mmengine.runner import Runner
from mmpretrain.datasets import CIFAR10
from mmpretrain.registry import MODELS
from mmpretrain.structures import DataSample
from yapf.yapflib import yapf_api

from mmssl.engine.resumable import make_resumable
from mmssl.utils.checks import quick_check
from mmssl.utils.checks.hooks import check_required_hooks
from mmssl.utils.checks.report import Report

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / 'configs/layermatch'
CONFIGS = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob('*.py'))
# Every method and every ablation, on the smallest network; and some with a moving average of the weights.
LEAVES = {name.split('/')[1].split('_')[0]: name for name in CONFIGS
          if name.startswith('cifar10/') and 'vit-t-p2' in name and name.endswith('cifar10-10.py')}  # yapf: disable
SCRATCH = [f'cifar10/{method}_wrn28-2_1xb512-1m_cifar10-40.py' for method in ('dash', 'freematch', 'layermatch')]
QUICK = ('layermatch', 'flexmatch', 'mean-teacher', 'supervised')
CLASSES = {'mnist': 10, 'cifar10': 10, 'cifar100': 100, 'stl10': 10, 'imagenet100': 100}
# Weight decay and learning rate of the paper's Tables 6 and 7, by network.
PUBLISHED = {
    'vit-t-p2': (5e-4, 5e-4), 'vit-s-p2': (5e-4, 5e-4), 'vit-b-p16': (5e-4, 1e-4), 'wrn28-2': (5e-4, 0.03),
    'wrn28-8': (1e-3, 0.03), 'wrn37-2': (5e-4, 0.03), 'resnet50': (3e-4, 0.03),
}  # fmt: skip


def load(name: str) -> Config:
    return Config.fromfile(str(FOLDER / name))


@pytest.mark.parametrize('name', CONFIGS)
def test_config_is_consistent(name: str) -> None:
    config = load(name)
    folder, stem = name.removesuffix('.py').split('/')
    method, network, *_, data = stem.split('_')
    labels = int(data.rpartition('-')[2])
    classifier = config.model.get('classifier', config.model)
    assert config.default_scope == 'mmpretrain' and classifier.head.num_classes == CLASSES[folder]
    sources = config.train_dataloader.dataset.sources
    assert sources.labeled.per_class * CLASSES[folder] == labels
    gpus = 4 if folder == 'imagenet100' else 1
    assert config.auto_scale_lr == dict(enable=False, base_batch_size=gpus * config.train_dataloader.batch_size)
    assert config.train_cfg.max_iters == config.param_scheduler[-1].end
    if network in PUBLISHED:
        optimizer = config.optim_wrapper.optimizer
        assert (optimizer.weight_decay, optimizer.lr) == PUBLISHED[network]
    if method == 'supervised':
        assert list(sources) == ['labeled']
        return
    assert config.model.type == 'mmssl.PseudoLabelClassifier' and config.train_dataloader.dataset.include_labeled
    assert config.train_dataloader.batch_size % sum(config.train_dataloader.sampler.source_ratio) == 0
    init_default_scope('mmpretrain')
    report = Report()
    check_required_hooks(config, report)
    assert not report.errors, report.errors
    kinds = [hook.type for hook in config.get('custom_hooks', [])]
    assert kinds.count('mmssl.GradReLUHook') == ('layermatch' in method or 'grad-relu' in method)
    assert kinds.count('mmssl.EMAHeadHook') == ('layermatch' in method or 'avg-clustering' in method)
    assert kinds.count('EMAHook') == (network in ('wrn28-2', 'wrn28-8', 'wrn37-2', 'resnet50')
                                      and method != 'mean-teacher')
    branches = sources.unlabeled.pipeline[-1].branches
    needed = MODELS.get('mmssl.PseudoLabelClassifier').required_branches(config.model.semi_train_cfg)
    # No view is made that no loss reads.
    assert sorted(needed) == sorted(branches)
    filled = [pipeline[-1] for pipeline in (sources.labeled.dataset.pipeline, sources.unlabeled.pipeline)]
    assert sorted(branch for node in filled for branch in branches if branch in node) == sorted(branches)
    assert all(node.branches == branches for node in filled)


def step(config: Config) -> dict[str, Any]:
    """One forward of random images by branch, and a backward pass."""
    init_default_scope('mmpretrain')
    torch.manual_seed(0)
    model = MODELS.build(config.model).train()
    size = 96 if 'stl10' in config.filename else 32
    inputs, samples = {}, {}
    for branch in ('sup', *type(model).required_branches(config.model.semi_train_cfg)):
        inputs[branch] = torch.randn(2, 3, size, size)
        samples[branch] = [DataSample(metainfo=dict(sample_idx=i)).set_gt_label(i) for i in range(2)]
    if model.has_teacher:
        model.follow_teacher()
    losses = model.loss(inputs, samples)
    total, logged = model.parse_losses(losses)
    total.backward()
    assert torch.isfinite(total)
    return logged


@pytest.mark.parametrize('name', [
    'cifar10/fixmatch_wrn28-2_1xb512-1m_cifar10-40.py', 'cifar10/freematch_vit-t-p2_1xb16-200k_cifar10-10.py',
    'mnist/layermatch_wrn10-2_cpu-1k_mnist-10.py', 'cifar10/mean-teacher_wrn28-2_1xb128-1m_cifar10-40.py',
    'cifar10/softmatch_wrn28-2_1xb512-1m_cifar10-40.py', 'stl10/uda_wrn37-2_1xb512-1m_stl10-40.py',
])  # yapf: disable
def test_one_of_each_kind_takes_a_step(name: str) -> None:
    assert 'unsup_loss' in step(load(name))


@pytest.fixture
def cifar10(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CIFAR-10 in its official form, with 4 images of each class for training and 2 for testing, all noise."""
    folder = tmp_path / 'cifar10' / CIFAR10.base_folder
    folder.mkdir(parents=True)
    files = {**{name: 8 for name, _ in CIFAR10.train_list}, CIFAR10.test_list[0][0]: 20}
    labels = np.arange(40) % 10
    for number, (name, count) in enumerate(files.items()):
        data = np.random.default_rng(number).integers(0, 256, (count, 3072), np.uint8)
        own = labels[8 * number:8 * number + 8] if count == 8 else labels[:20]
        (folder / name).write_bytes(pickle.dumps(dict(data=data, labels=own.tolist())))
    monkeypatch.setattr(CIFAR10, '_check_integrity', lambda self: True)
    # What takes most of the time of two iterations: formatting the config, and asking compilers who they are.
    for module in (config_module, yapf_api):  # mmengine took the name along in older versions
        monkeypatch.setattr(module, 'FormatCode', lambda text, **_: (text, True), raising=False)
    monkeypatch.setattr(runner_module, 'collect_env', dict)
    monkeypatch.setenv('CIFAR10_ROOT', str(folder.parent))


def shrink(config: Config, work_dir: Path) -> Config:
    """Two iterations of a network of one block, with all other settings as they are."""
    config.work_dir = str(work_dir)
    config.train_cfg.update(max_iters=2, val_interval=2)
    config.train_dataloader.update(num_workers=0, persistent_workers=False)
    config.val_dataloader.update(num_workers=0, persistent_workers=False)
    config.train_dataloader.batch_size = 2 * sum(config.train_dataloader.sampler.source_ratio)
    config.default_hooks.logger.interval = 1
    classifier = config.model.get('classifier', config.model)
    if classifier.backbone.type == 'VisionTransformer':
        classifier.backbone.update(patch_size=8, arch=dict(
            embed_dims=16, num_layers=1, num_heads=2, feedforward_channels=16))  # yapf: disable
        classifier.head.in_channels = 16
    else:
        classifier.backbone.update(depth=10, widen_factor=1, base_channels=4)
        classifier.head.in_channels = 16
    # Two iterations are too few for a schedule.
    config.param_scheduler = []
    options = config.model.get('semi_train_cfg', {})
    if options.get('unsup_begin', 0) > 1:
        options.unsup_begin = 1
    return config


@pytest.mark.parametrize('name', [
    *(pytest.param(name, marks=[] if method in QUICK else pytest.mark.slow) for method, name in LEAVES.items()),
    *(pytest.param(name, marks=pytest.mark.slow) for name in SCRATCH)])  # yapf: disable
def test_every_method_trains(cifar10: None, tmp_path: Path, name: str) -> None:
    """From images to the validation, with the config's own hooks."""
    config = shrink(load(name), tmp_path / 'run')
    quick_check(config)
    runner = Runner.from_cfg(config)
    make_resumable(runner)
    kinds = [HOOKS.get(hook.type) for hook in config.get('custom_hooks', [])]
    assert all(any(isinstance(hook, kind) for hook in runner.hooks) for kind in kinds)
    before = {key: value.clone() for key, value in runner.model.state_dict().items()}
    runner.train()
    assert runner.iter == 2
    after = runner.model.state_dict()
    assert all(torch.isfinite(value).all() for value in after.values())
    assert any(key.endswith('head.fc.weight') and not torch.equal(value, before[key]) for key, value in after.items())
    scalars = runner.message_hub.log_scalars
    assert np.isfinite(scalars['train/loss'].data[0]).all() and 'val/accuracy/top1' in scalars
    assert ('train/unsup_loss' in scalars) == ('supervised' not in name)
    averaged = [key for key in after if key.startswith('average_head.')]
    assert bool(averaged) == any(hook.type == 'mmssl.EMAHeadHook' for hook in config.get('custom_hooks', []))
    if averaged:
        assert after['average_head.step'] == 2


def test_the_files_are_those_of_the_generator() -> None:
    done = subprocess.run([sys.executable, str(ROOT / 'tools/dev/write_layermatch_configs.py'), '--check'],
                          capture_output=True, text=True)  # yapf: disable
    assert done.returncode == 0, done.stdout


def test_every_cell_of_the_tables_is_there() -> None:
    spec = importlib.util.spec_from_file_location('layermatch_configs', ROOT / 'tools/dev/write_layermatch_configs.py')
    module = importlib.util.module_from_spec(spec)
    sys.modules['layermatch_configs'] = module
    spec.loader.exec_module(module)
    cells = [(experiment.folder, labels) for experiment in module.EXPERIMENTS if not experiment.cpu
             for labels in experiment.labels]
    assert len(cells) == 19 and len(module.TITLES) == 11 and len(CONFIGS) == 19 * 11 + 5 + 4 * 6
