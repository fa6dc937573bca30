"""tools/datasets/make_noisy_labels.py: the same file everywhere, sources of labels, use by the data set, errors."""

import importlib.util
from pathlib import Path
from types import ModuleType

import cv2
import numpy as np
import pytest

LABELS = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 0]


@pytest.fixture(scope='module')
def tool(repo_root: Path) -> ModuleType:
    path = repo_root / 'tools/datasets/make_noisy_labels.py'
    spec = importlib.util.spec_from_file_location('make_noisy_labels', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / 'train.txt'
    path.write_text(''.join(f'img/{i}.jpg {label}\n' for i, label in enumerate(LABELS)))
    return path


def run(tool: ModuleType, *arguments: object) -> int:
    return tool.main(list(map(str, arguments)))


def test_golden_file(tool, source, tmp_path, capsys):
    out = tmp_path / 'noise/sym40.txt'
    arguments = ('--labels', source, '--kind', 'symmetric', '--rate', '0.4', '--seed', 7, '--out', out)
    assert run(tool, *arguments) == 0
    # Made by independent code: changing these bytes changes everybody's experiments.
    assert out.read_bytes() == Path(__file__).with_name('golden_noisy_labels.txt').read_bytes()
    assert '4 of 12 labels changed (33.33%), 3 classes' in capsys.readouterr().out


def test_nothing_is_overwritten_silently(tool, source, tmp_path, capsys):
    out = tmp_path / 'noise.txt'
    arguments = ('--labels', source, '--kind', 'symmetric', '--rate', '0.4', '--out', out)
    assert run(tool, *arguments) == 0
    before = out.read_bytes()
    assert run(tool, *arguments) == 0 and 'unchanged' in capsys.readouterr().out
    assert run(tool, *arguments, '--seed', 5) == 2
    assert 'exists with other content' in capsys.readouterr().err and out.read_bytes() == before
    assert run(tool, *arguments, '--seed', 5, '--force') == 0 and out.read_bytes() != before
    assert not list(tmp_path.glob('*tmp*'))


def test_asymmetric(tool, source, tmp_path):
    out = tmp_path / 'noise.txt'
    arguments = ('--labels', source, '--kind', 'asymmetric', '--rate', '1', '--out', out)
    assert run(tool, *arguments, '--classes', 'truck', 'automobile', 'boat', '--confusions', 'truck:boat', '1:0') == 0
    lines = out.read_text().splitlines()
    assert '# confusions: truck:boat 1:0' in lines
    assert [line for line in lines if line[0] != '#'] == [str({0: 2, 1: 0, 2: 2}[label]) for label in LABELS]


@pytest.mark.parametrize('arguments, words', [
    (['--rate', '1.5'], r'rate must be a number in [0, 1]'),
    (['--rate', '0.4', '--kind', 'asymmetric'], 'confusions'),
    (['--rate', '0.4', '--kind', 'asymmetric', '--confusions', 'cifar10'], "'truck' is no class"),
    (['--rate', '0.4', '--kind', 'asymmetric', '--confusions', '0:1', '2'], "'2' is no pair"),
    (['--rate', '0.4', '--kind', 'asymmetric', '--confusions', '0:1', '0:2'], 'taken for two others'),
    (['--rate', '0.4', '--classes', '2'], 'has the labels [2]; with 2 classes'),
    (['--rate', '0.4', '--labels', 'none.txt'], "there is no file 'none.txt'"),
])  # fmt: skip
def test_errors(tool, source, tmp_path, capsys, arguments, words):
    out = tmp_path / 'noise.txt'
    assert run(tool, '--labels', source, '--kind', 'symmetric', '--out', out, *arguments) == 2
    assert words in capsys.readouterr().err and not out.exists()


CONFIG = """
default_scope = 'mmpretrain'
train_dataloader = dict(batch_size=2, dataset=dict(
    type='CustomDataset', data_root={root!r}, pipeline=[dict(type='LoadImageFromFile'), dict(type='PackInputs')]))
"""


def test_labels_of_a_config_and_back(tool, tmp_path, capsys):
    pytest.importorskip('mmpretrain')
    from mmengine.config import Config
    from mmengine.registry import DATASETS, DefaultScope
    for name in ('cat/a', 'cat/b', 'dog/a', 'dog/b'):
        (tmp_path / 'img' / name).parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(tmp_path / 'img' / f'{name}.png'), np.zeros((4, 4, 3), np.uint8))
    (tmp_path / 'config.py').write_text(CONFIG.format(root=str(tmp_path / 'img')))
    out = tmp_path / 'noise.txt'
    arguments = ('--config', tmp_path / 'config.py', '--kind', 'asymmetric', '--confusions', 'cat:dog', '--rate', '0.5')
    assert run(tool, *arguments, '--out', out) == 0
    cfg = Config.fromfile(tmp_path / 'config.py')
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        dataset = DATASETS.build(dict(type='mmssl.NoisyLabelDataset', dataset=cfg.train_dataloader.dataset,
                                      noise_file=str(out)))  # fmt: skip
    assert sorted(dataset.labels.tolist()) == [0, 1, 1, 1] and dataset.true_labels.tolist() == [0, 0, 1, 1]
    wrong = int(np.flatnonzero(dataset.labels != dataset.true_labels)[0])
    sample = dataset[wrong]['data_samples']
    assert sample.gt_label.tolist() == [1] and sample.metainfo['true_label'] == 0
    # A config that has the noise already gives the same file.
    (tmp_path / 'noisy.py').write_text(
        f"_base_ = 'config.py'\n_dataset = {{{{_base_.train_dataloader.dataset}}}}\ntrain_dataloader = dict(dataset="
        f"dict(_delete_=True, type='mmssl.NoisyLabelDataset', noise_file={str(out)!r}, dataset=_dataset))\n")
    assert run(tool, '--config', tmp_path / 'noisy.py', *arguments[2:], '--out', out) == 0
    assert 'unchanged' in capsys.readouterr().out
    assert run(tool, *arguments, '--out', out, '--key', 'val_dataloader.dataset') == 2
    assert 'has no data set (a dict with `type`) at val_dataloader.dataset' in capsys.readouterr().err
    (tmp_path / 'joined.py').write_text(
        "_base_ = 'config.py'\ntrain_dataloader = dict(dataset=dict(_delete_=True, type='mmssl.MultiSourceDataset', "
        'sources=dict(labeled={{_base_.train_dataloader.dataset}})))\n')
    joined = ('--config', tmp_path / 'joined.py', *arguments[2:], '--out', out)
    assert run(tool, *joined) == 2
    assert 'such as --key train_dataloader.dataset.sources.labeled' in capsys.readouterr().err
    assert run(tool, *joined, '--key', 'train_dataloader.dataset.sources.labeled') == 0
