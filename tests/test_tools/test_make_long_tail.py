"""tools/datasets/make_long_tail.py: sizes, the same file everywhere, use by the data set, errors."""

import hashlib
import importlib.util
from pathlib import Path
from types import ModuleType

import cv2
import numpy as np
import pytest

LABELS = [0] * 16 + [1] * 16 + [2] * 16


@pytest.fixture(scope='module')
def tool(repo_root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location('make_long_tail', repo_root / 'tools/datasets/make_long_tail.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / 'train.txt'
    path.write_text(''.join(f'{label}\n' for label in LABELS))
    return path


def run(tool: ModuleType, *arguments: object) -> int:
    return tool.main(list(map(str, arguments)))


def test_the_same_list_everywhere(tool, source, tmp_path):
    out = tmp_path / 'lt.txt'
    arguments = ('--labels', source, '--ratio', 4, '--seed', 1, '--out', out)
    assert run(tool, *arguments) == 0
    # By code of its own: 16, 8 and 4 samples, the first in the order of SHA-256.
    kept = []
    for label, size in enumerate((16, 8, 4)):
        members = [index for index, other in enumerate(LABELS) if other == label]
        members.sort(key=lambda index: hashlib.sha256(f'long tail\n1\n{index}'.encode()).hexdigest())
        kept += members[:size]
    lines = out.read_text().splitlines()
    assert [line for line in lines if line[0] != '#'] == [f'{index}\t{LABELS[index]}' for index in sorted(kept)]
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    assert lines[:8] == [
        '# mmssl make_long_tail, version 1', '# kind: long tail', '# ratio: 4', '# seed: 1', '# num_samples: 28',
        '# num_classes: 3', '# sizes: 16 8 4', '# source_samples: 48',
    ] and lines[8] == f'# source_sha256: {digest}'  # fmt: skip
    assert run(tool, *arguments[:-1], out, '--largest', 8) == 2  # it would be another list
    assert out.read_text().splitlines() == lines


def test_as_large_as_the_classes_allow(tool, tmp_path):
    path = tmp_path / 'train.txt'
    path.write_text('0\n' * 100 + '1\n' * 9 + '2\n' * 30)
    assert run(tool, '--labels', path, '--ratio', 4, '--out', tmp_path / 'lt.txt') == 0
    assert '# sizes: 19 9 4' in (tmp_path / 'lt.txt').read_text()  # 20 would take 10 of class 1


@pytest.mark.parametrize('arguments, words', [
    (['--ratio', '0.5'], "--ratio: must be a number >= 1, got '0.5'"),
    (['--ratio', 'x'], '--ratio: must be'),
    (['--ratio', '100'], 'class 2 would keep none'),
    (['--ratio', '2', '--largest', '30'], 'class 0 would keep 30 samples and has 16'),
    (['--ratio', '2', '--largest', '0'], '--largest: must be an integer >= 1'),
    (['--ratio', '2', '--classes', '4'], '4 classes, but none of the 48 samples is of class 3'),
])  # fmt: skip
def test_errors(tool, source, tmp_path, capsys, arguments, words):
    assert run(tool, '--labels', source, '--out', tmp_path / 'lt.txt', *arguments) == 2
    assert words in capsys.readouterr().err and not (tmp_path / 'lt.txt').exists()


def test_subset_with_noise(tool, tmp_path):
    pytest.importorskip('mmpretrain')
    from mmengine.registry import DATASETS, DefaultScope
    for label, name in enumerate(('cat', 'dog')):
        (tmp_path / 'img' / name).mkdir(parents=True)
        for index in range(4):
            cv2.imwrite(str(tmp_path / f'img/{name}/{index}.png'), np.full((4, 4, 3), 40 * label + index, np.uint8))
    data = f"dict(type='CustomDataset', data_root={str(tmp_path / 'img')!r}, pipeline=[dict(type='PackInputs')])"
    (tmp_path / 'config.py').write_text(f"default_scope = 'mmpretrain'\ntrain_dataloader = dict(dataset={data})\n")
    assert run(tool, '--config', tmp_path / 'config.py', '--ratio', 2, '--out', tmp_path / 'lt.txt') == 0
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        subset = dict(type='mmssl.LabeledSubset', ann_file=str(tmp_path / 'lt.txt'), dataset=eval(data))
        dataset = DATASETS.build(dict(type='mmssl.NoisyLabelDataset', dataset=subset,
                                      noise=dict(kind='asymmetric', rate=0.5, confusions={'cat': 'dog'})))  # fmt: skip
    assert dataset.true_labels.tolist() == [0] * 4 + [1] * 2 and sorted(dataset.labels) == [0] * 2 + [1] * 4
    numbers = [dataset[i]['data_samples'].sample_idx for i in range(6)]
    assert numbers[:4] == [0, 1, 2, 3] and numbers == sorted(numbers) and max(numbers) >= 5
