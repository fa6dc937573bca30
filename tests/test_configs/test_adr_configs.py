"""Every config of configs/adr parses and builds; each network and loss is built once, the former runs on shapes."""

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('mmpretrain')
import cv2
import numpy as np
import torch
import yaml
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from mmengine.registry import HOOKS, METRICS, PARAM_SCHEDULERS, TRANSFORMS, init_default_scope
from mmpretrain.registry import DATASETS, MODELS
from mmpretrain.structures import DataSample

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / 'configs' / 'adr'
CONFIGS = {path.relative_to(FOLDER).as_posix(): path for path in sorted(FOLDER.rglob('*.py'))}
CLASSES = {'imagenet': 1000, 'flowers102': 102, 'cifar10': 10, 'cifar10_cpu': 10, 'fer2013': 7}
# Faces have tests of their own.
CLASSIFIERS = [name for name in CONFIGS if name.split('/')[0] in CLASSES]
SIDES = {'imagenet': 224, 'flowers102': 224, 'cifar10': 32, 'cifar10_cpu': 32, 'fer2013': 40}
# Types of the terms of each method's loss.
TERMS = {
    'ce': ['CrossEntropyLoss'],
    'ls': ['LabelSmoothLoss'],
    'ols': ['mmssl.OnlineLabelSmoothLoss'],
    'entropy': ['CrossEntropyLoss', 'mmssl.EntropyLoss'],
}
EPOCHS = {'imagenet': 1281167, 'flowers102': 2040, 'cifar10': 50000, 'fer2013': 28709}


@pytest.fixture(scope='module')
def configs() -> dict[str, Config]:
    """All of them, parsed once."""
    return {name: Config.fromfile(str(path)) for name, path in CONFIGS.items()}


def method_of(name: str) -> tuple[str, bool]:
    """Method of a config by its file name, and whether ADR is with it."""
    method = Path(name).name.split('_')[0]
    return method.removeprefix('adr-'), method.startswith('adr-')


def terms(loss: dict) -> list[dict]:
    return loss['losses'] if loss['type'] == 'mmssl.CombinedLoss' else [loss]


@pytest.mark.parametrize('name', CLASSIFIERS)
def test_config_says_what_its_name_says(name: str, configs: dict[str, Config]) -> None:
    config, folder = configs[name], name.split('/')[0]
    assert config.default_scope == 'mmpretrain'
    _, _, train, data = Path(name).stem.split('_')
    batch, length = train.split('-')
    gpus, images = map(int, batch.split('xb'))
    assert config.train_dataloader.batch_size == images
    assert config.auto_scale_lr == dict(enable=False, base_batch_size=gpus * images)
    if length.endswith('k'):
        assert config.train_cfg.max_iters == round(float(length[:-1]) * 1000)
    else:
        epoch = -(-EPOCHS[folder] // (gpus * images))
        assert config.train_cfg.max_iters == int(length[:-1]) * epoch
        assert all(hook.interval == epoch for hook in config.get('custom_hooks', []))
    scheduler = config.param_scheduler[-1]
    assert scheduler.get('end', config.train_cfg.max_iters) == config.train_cfg.max_iters
    method, adr = method_of(name)
    kinds = [term['type'] for term in terms(config.model.head.loss)]
    assert kinds == TERMS[method] + ['mmssl.ADRLoss'] * adr
    hooks = [hook.type for hook in config.get('custom_hooks', [])]
    assert hooks == ['mmssl.OnlineLabelSmoothHook'] * (method == 'ols')
    classes = CLASSES[folder]
    assert config.model.head.num_classes == config.model.data_preprocessor.get('num_classes', classes) == classes
    # Mixed images need targets of all classes.
    assert ('augments' in config.model.get('train_cfg', {})) == ('num_classes' in config.model.data_preprocessor)
    for term in terms(config.model.head.loss):
        assert term.get('num_classes', classes) == classes
    labeled = config.train_dataloader.dataset.sources.labeled
    if '-sym' in data:
        rate = int(data.split('-sym')[1]) / 100
        assert labeled.type == 'mmssl.NoisyLabelDataset'
        assert labeled.noise == dict(kind='symmetric', rate=rate, seed=123)
        assert 'noise' not in labeled.dataset
    else:
        assert labeled.type != 'mmssl.NoisyLabelDataset'
    held_out = config.val_dataloader.dataset.get('skip', 0)
    assert held_out == (1000 if 'heldout' in data else 0)


def test_methods_change_only_the_loss(configs: dict[str, Config]) -> None:
    """Two methods of one experiment are the same training."""
    experiments: dict[str, set[str]] = {}
    for name in CLASSIFIERS:
        content = configs[name].to_dict()
        content['model']['head'].pop('loss')
        kept = {key: content[key] for key in ('model', 'train_dataloader', 'val_dataloader', 'optim_wrapper',
                                              'param_scheduler', 'train_cfg', 'randomness')}  # fmt: skip
        folder, file = name.split('/')
        experiments.setdefault(f'{folder}/{file.split("_", 1)[1]}', set()).add(json.dumps(kept, sort_keys=True))
    assert all(len(variants) == 1 for variants in experiments.values())
    assert len(experiments) == 15


def test_networks_give_logits_of_all_classes(configs: dict[str, Config]) -> None:
    init_default_scope('mmpretrain')
    seen = set()
    for name in CLASSIFIERS:
        model_cfg, folder = configs[name].to_dict()['model'], name.split('/')[0]
        model_cfg['head'].pop('loss')
        key = json.dumps(model_cfg, sort_keys=True)
        if key in seen:
            continue
        seen.add(key)
        model, side = MODELS.build(model_cfg).to('meta'), SIDES[folder]
        features = model.extract_feat(torch.empty(2, 3, side, side, device='meta'))
        assert model.head(features).shape == (2, CLASSES[folder])
    assert len(seen) == 7


def test_losses_train(configs: dict[str, Config]) -> None:
    init_default_scope('mmpretrain')
    seen = set()
    for name in CLASSIFIERS:
        config, classes = configs[name], CLASSES[name.split('/')[0]]
        key = (json.dumps(config.model.head.loss.to_dict(), sort_keys=True), classes)
        if key in seen:
            continue
        seen.add(key)
        head = MODELS.build(dict(type='LinearClsHead', num_classes=classes, in_channels=4,
                                 loss=config.model.head.loss))  # fmt: skip
        for module in head.modules():
            module.followed = True  # by a hook, for online label smoothing
        mixed = 'augments' in config.model.get('train_cfg', {})
        samples = [DataSample().set_gt_label(index) for index in range(3)]
        if mixed:
            samples = [sample.set_gt_score(torch.full((classes, ), 1 / classes)) for sample in samples]
        losses = head.loss((torch.randn(3, 4), ), samples)
        total = sum(value for key, value in losses.items() if 'loss' in key)
        total.backward()
        assert torch.isfinite(total) and head.fc.weight.grad.abs().sum() > 0
    assert len(seen) > 20


def test_settings_build(configs: dict[str, Config]) -> None:
    """Optimizers, schedulers, hooks and metrics."""
    init_default_scope('mmpretrain')
    seen = set()
    for name in CLASSIFIERS:
        config = configs[name]
        nodes = [(METRICS, metric) for metric in config.val_evaluator]
        nodes += [(HOOKS, hook) for hook in config.get('custom_hooks', [])]
        for registry, node in nodes:
            key = json.dumps(node.to_dict(), sort_keys=True)
            if key not in seen:
                registry.build(node)
                seen.add(key)
        key = json.dumps([config.optim_wrapper.to_dict(), config.param_scheduler], default=str)
        if key not in seen:
            seen.add(key)
            wrapper = build_optim_wrapper(torch.nn.Linear(2, 2), config.optim_wrapper)
            for scheduler in config.param_scheduler:
                PARAM_SCHEDULERS.build(scheduler, default_args=dict(optimizer=wrapper))


def pipelines(node: Any) -> Iterator[list]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == 'pipeline':
                yield value
            else:
                yield from pipelines(value)


def test_pipelines_make_samples(configs: dict[str, Config], tmp_path: Path) -> None:
    init_default_scope('mmpretrain')
    cv2.imwrite(str(tmp_path / 'a.png'), np.random.default_rng(0).integers(0, 256, (260, 300, 3), dtype=np.uint8))
    seen = set()
    for name in CLASSIFIERS:
        config, folder = configs[name].to_dict(), name.split('/')[0]
        for loader in ('train_dataloader', 'val_dataloader', 'test_dataloader'):
            for pipeline in pipelines(config[loader]['dataset']):
                key = json.dumps(pipeline, sort_keys=True)
                if key in seen:
                    continue
                seen.add(key)
                stored = 48 if folder == 'fer2013' else 32
                results = dict(img_path=str(tmp_path / 'a.png'), gt_label=1)
                if folder in ('cifar10', 'fer2013'):
                    results['img'] = np.random.default_rng(0).integers(0, 256, (stored, stored, 3), dtype=np.uint8)
                for transform in pipeline:
                    results = TRANSFORMS.build(transform)(results)
                if folder != 'cifar10_cpu' or len(pipeline) > 2:
                    assert results['inputs'].shape == (3, SIDES[folder], SIDES[folder]), name
                assert results['data_samples'].gt_label.item() == 1
    assert len(seen) > 8


def test_data_sets_are_known(configs: dict[str, Config]) -> None:
    init_default_scope('mmpretrain')
    for name in CLASSIFIERS:
        for loader in ('train_dataloader', 'val_dataloader', 'test_dataloader'):
            dataset = configs[name][loader].dataset
            kinds = [dataset.type]
            if 'sources' in dataset:
                labeled = dataset.sources.labeled
                kinds += [labeled.type, *([labeled.dataset.type] if 'dataset' in labeled else [])]
            assert all(DATASETS.get(kind) is not None for kind in kinds), (name, kinds)


@pytest.mark.parametrize('name', [name for name in CONFIGS if name.startswith('unsupervised/')])
def test_unsupervised_segmentation(name: str, configs: dict[str, Config]) -> None:
    config = configs[name]
    assert config.default_scope == 'mmengine'
    init_default_scope('mmengine')
    assert config.auto_scale_lr == dict(enable=False, base_batch_size=1)
    method, rest = Path(name).stem.split('_', 1)
    assert rest.startswith(f'conv{config.model.num_convs}-c{config.model.channels}_1xb1-1k_')
    assert ('regularizer' in config.model) == (method == 'adr')
    published = config.model.num_convs == 3
    assert config.model.continuity_weight == (5.0 if published else 1.0)
    assert ('val_evaluator' in config) == published
    model = MODELS.build(config.model)
    total, _ = model.parse_losses(model(torch.rand(1, 3, 6, 5), mode='loss'))
    total.backward()
    assert torch.isfinite(total)
    for hook in config.custom_hooks:
        HOOKS.build(hook)
    for transform in config.train_dataloader.dataset.pipeline:
        TRANSFORMS.build(transform)


def test_experiments_are_short() -> None:
    assert all(len(path.read_text().splitlines()) <= 25 for path in CONFIGS.values())


def test_generated_configs_are_up_to_date() -> None:
    path = ROOT / 'tools' / 'dev' / 'write_adr_configs.py'
    spec = importlib.util.spec_from_file_location('write_adr_configs', path)
    module = importlib.util.module_from_spec(spec)
    # Before it runs: its data class looks itself up.
    sys.modules['write_adr_configs'] = module
    spec.loader.exec_module(module)
    assert module.main(['--check']) == 0


def test_metafile_lists_every_config() -> None:
    models = yaml.safe_load((FOLDER / 'metafile.yml').read_text())['Models']
    assert sorted(model['Config'] for model in models) == [f'configs/adr/{name}' for name in CONFIGS]
    assert all(model['Name'] == Path(model['Config']).stem for model in models)
