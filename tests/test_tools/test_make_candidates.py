"""tools/datasets/make_candidates.py: the same file everywhere, every kind, use by the data set, errors."""

import importlib.util
from pathlib import Path
from types import ModuleType

import cv2
import numpy as np
import pytest

from mmssl.utils.annotator import save_annotation

LABELS = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 0]


@pytest.fixture(scope='module')
def tool(repo_root: Path) -> ModuleType:
    path = repo_root / 'tools/datasets/make_candidates.py'
    spec = importlib.util.spec_from_file_location('make_candidates', path)
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


def sets_of(path: Path) -> list[list[int]]:
    return [list(map(int, line.split())) for line in path.read_text().splitlines() if line[0] != '#']


def test_golden_file(tool, source, tmp_path, capsys):
    out = tmp_path / 'candidates/q50.txt'
    assert run(tool, '--labels', source, '--kind', 'uniform', '--rate', '0.5', '--seed', 7, '--out', out) == 0
    # Changing these bytes changes everybody's experiments.
    assert out.read_bytes() == Path(__file__).with_name('golden_candidates.txt').read_bytes()
    assert '12 sets, ' in capsys.readouterr().out


def test_nothing_is_overwritten_silently(tool, source, tmp_path, capsys):
    out = tmp_path / 'sets.txt'
    arguments = ('--labels', source, '--kind', 'uniform', '--rate', '0.5', '--out', out)
    assert run(tool, *arguments) == 0
    before = out.read_bytes()
    assert run(tool, *arguments) == 0 and 'unchanged' in capsys.readouterr().out
    assert run(tool, *arguments, '--seed', 5) == 2
    assert 'exists with other content' in capsys.readouterr().err and out.read_bytes() == before
    assert run(tool, *arguments, '--seed', 5, '--force') == 0 and out.read_bytes() != before


def test_every_kind(tool, source, tmp_path):
    (tmp_path / 'matrix.txt').write_text('1 1 0\n0 1 0\n0 0 1\n')
    (tmp_path / 'groups.txt').write_text('x\ny\nx\n')
    save_annotation(tmp_path / 'probs.npz', np.tile(np.float32([0.5, 0.5, 0]), (12, 1)), LABELS)
    kinds = {
        'flip': (['--matrix', tmp_path / 'matrix.txt'], {0: [0, 1], 1: [1], 2: [2]}),
        'hierarchical': (['--groups', tmp_path / 'groups.txt', '--rate', '1'], {0: [0, 2], 1: [1], 2: [0, 2]}),
        # Twice as much as a third of 1 / 3 would be is clipped to certainty.
        'instance': (['--annotation', tmp_path / 'probs.npz', '--rate', '0.4'], {0: [0, 1], 1: [0, 1], 2: None}),
    }
    for kind, (options, expected) in kinds.items():
        out = tmp_path / f'{kind}.txt'
        assert run(tool, '--labels', source, '--kind', kind, *options, '--out', out) == 0
        assert f'# kind: {kind}' in out.read_text()
        for label, labels in zip(LABELS, sets_of(out), strict=True):
            assert label in labels and expected[label] in (None, labels)


@pytest.mark.parametrize(('arguments', 'words'), [
    (['--kind', 'uniform'], '--kind uniform needs --rate'),
    (['--kind', 'uniform', '--rate', '1.5'], '--rate must be a number in [0, 1]'),
    (['--kind', 'uniform', '--rate', '0.5', '--matrix', 'm.txt'], '--matrix has no effect with --kind uniform'),
    (['--kind', 'flip', '--matrix', 'm.txt'], "there is no file 'm.txt'"),
    (['--kind', 'flip', '--matrix', '{source}'], 'is no table of numbers'),
    (['--kind', 'hierarchical', '--rate', '0.5', '--groups', '{source}'], 'has 12 lines; one for each of 3 classes'),
    (['--kind', 'instance', '--rate', '0.4', '--annotation', 'a.npz'], '--annotator CONFIG makes one'),
    (['--kind', 'instance', '--rate', '0.4', '--annotation', '{source}'], 'is no annotation'),
    (['--kind', 'instance', '--rate', '0.4', '--annotation', 'a.npz', '--annotator', 'c.py'], 'needs --config'),
    (['--kind', 'uniform', '--rate', '0.5', '--labels', 'none.txt'], "there is no file 'none.txt'"),
])  # yapf: disable
def test_errors(tool, source, tmp_path, capsys, arguments, words):
    out = tmp_path / 'sets.txt'
    arguments = [str(argument).format(source=source) for argument in arguments]
    assert run(tool, '--labels', source, '--out', out, *arguments) == 2
    assert words in capsys.readouterr().err and not out.exists()


def test_annotations_of_other_labels(tool, source, tmp_path, capsys):
    path = tmp_path / 'probs.npz'
    save_annotation(path, np.ones((12, 3), np.float32) / 3, LABELS[::-1])
    arguments = ('--labels', source, '--kind', 'instance', '--rate', '0.4', '--annotation', path)
    assert run(tool, *arguments, '--out', tmp_path / 'sets.txt') == 2
    assert 'was made from other labels' in capsys.readouterr().err
    with pytest.raises(FileExistsError, match='it is used without --annotator'):
        save_annotation(path, np.ones((12, 3), np.float32), LABELS)


CONFIG = """
default_scope = 'mmpretrain'
pipeline = [dict(type='LoadImageFromFile'), dict(type='PackInputs')]
data = dict(type='CustomDataset', data_root={root!r}, pipeline=pipeline)
model = dict(
    type='ImageClassifier', backbone=dict(type='LeNet5'), neck=dict(type='GlobalAveragePooling'),
    head=dict(type='LinearClsHead', num_classes=2, in_channels=120),
    data_preprocessor=dict(mean=[128], std=[64], num_classes=2))
train_dataloader = dict(batch_size=4, num_workers=0, sampler=dict(type='DefaultSampler', shuffle=True), dataset=data)
val_dataloader = dict(batch_size=4, num_workers=0, sampler=dict(type='DefaultSampler', shuffle=False), dataset=data)
val_evaluator = dict(type='Accuracy')
val_cfg = dict()
train_cfg = dict(by_epoch=True, max_epochs=30, val_interval=30)
optim_wrapper = dict(optimizer=dict(type='Adam', lr=1e-3))
randomness = dict(seed=0)
"""


def test_an_annotator_is_trained_and_kept(tool, tmp_path, monkeypatch):
    pytest.importorskip('mmpretrain')
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(('cat/a', 'cat/b', 'cat/c', 'dog/a', 'dog/b', 'dog/c')):
        (tmp_path / 'img' / name).parent.mkdir(parents=True, exist_ok=True)
        image = np.full((32, 32), 40 if 'cat' in name else 200, np.uint8)
        cv2.imwrite(str(tmp_path / 'img' / f'{name}.png'), image + number)
    text = CONFIG.format(root=str(tmp_path / 'img')).replace(
        "dict(type='LoadImageFromFile')", "dict(type='LoadImageFromFile', color_type='grayscale')")
    (tmp_path / 'config.py').write_text(text)
    arguments = ('--config', 'config.py', '--kind', 'instance', '--rate', '0.4', '--annotation', 'probs.npz',
                 '--out', 'sets.txt')
    assert run(tool, *arguments, '--annotator', 'config.py') == 0
    probs = np.load('probs.npz')['probs']
    assert probs.shape == (6, 2) and np.allclose(probs.sum(1), 1) and (probs.argmax(1) == [0, 0, 0, 1, 1, 1]).all()
    before = Path('sets.txt').read_bytes()
    assert b'annotation_sha256' in before
    assert run(tool, *arguments) == 0 and Path('sets.txt').read_bytes() == before  # without training again
    assert run(tool, *arguments, '--annotator', 'config.py') == 2  # what was trained is not lost

    # Of a part of the images, whose pipeline is one level below; the annotator learns from all of them.
    part = dict(type='mmssl.LabeledSubset', per_class=2, dataset=dict(
        type='CustomDataset', data_root=str(tmp_path / 'img'), pipeline=[dict(type='NoSuchTransform')]))
    (tmp_path / 'part.py').write_text(f"default_scope = 'mmpretrain'\ntrain_dataloader = dict(dataset={part!r})\n")
    arguments = ('--config', 'part.py', '--kind', 'instance', '--rate', '0.4', '--annotation', 'part.npz',
                 '--out', 'part.txt')
    assert run(tool, *arguments, '--annotator', 'config.py') == 0
    assert np.load('part.npz')['probs'].argmax(1).tolist() == [0, 0, 1, 1]
