"""tools/check_data.py: one report with everything, exit codes, JSON."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

pytest.importorskip('mmseg')


@pytest.fixture(scope='module')
def tool(repo_root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location('check_data', repo_root / 'tools/check_data.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CONFIG = """
default_scope = 'mmseg'
data_root = {root!r}
classes = {classes!r}
palette = {palette!r}
load = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations')]
crop = [dict(type='RandomCrop', crop_size=(32, 32)), dict(type='PackSegInputs')]
model = dict(
    type='EncoderDecoder',
    data_preprocessor=dict(type='SegDataPreProcessor', mean=[127.] * 3, std=[60.] * 3, size=(32, 32)),
    backbone=dict(type='ResNetV1c', depth=18, base_channels=8, stem_channels=8, num_stages=1, strides=(1,),
                  dilations=(1,), out_indices=(0,)),
    decode_head=dict(type='FCNHead', in_channels=8, channels=8, in_index=0, num_convs=1, num_classes=4,
                     loss_decode=dict(type='CrossEntropyLoss')))
train_dataloader = dict(
    batch_size=2,
    sampler=dict(type='InfiniteSampler'),
    dataset=dict(type='mmssl.SplitSegDataset', data_root=data_root, ann_file='splits/labeled.txt',
                 data_prefix=dict(img_path='img_dir/train', seg_map_path='ann_dir/train'),
                 metainfo=dict(classes=classes, palette=palette), pipeline=load + crop))
val_dataloader = dict(
    batch_size=1,
    dataset=dict(type='mmssl.SplitSegDataset', data_root=data_root,
                 data_prefix=dict(img_path='img_dir/val', seg_map_path='ann_dir/val'),
                 metainfo=dict(classes=classes, palette=palette), pipeline=load + [dict(type='PackSegInputs')]))
test_dataloader = val_dataloader
train_cfg = dict(type='IterBasedTrainLoop', max_iters=100)
optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.1, momentum=0.9))
default_hooks = dict(checkpoint=dict(type='CheckpointHook', by_epoch=False))
"""


@pytest.fixture
def config(segmentation_data: SimpleNamespace, tmp_path: Path) -> str:
    path = tmp_path / 'config.py'
    data = segmentation_data
    path.write_text(CONFIG.format(root=str(data.root), classes=data.classes, palette=data.palette))
    return str(path)


def test_sound_config(tool: ModuleType, config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main([config, '--json', str(tmp_path / 'report.json'), '--gpus', '2']) == 0
    out = capsys.readouterr().out
    for text in (
        'train: 4 images; 2 per GPU, 4 in the global batch; 1.00 passes per epoch; 100.0 passes over the run',
        'model.decode_head: 4 classes', 'labels of train (4 files)', 'labels of val (4 files)', 'shape3',
        '4 images, 48x40 (4)', 'estimated memory per GPU', 'optimizer state', 'activations', 'no errors',
    ):  # fmt: skip
        assert text in out
    report = json.loads((tmp_path / 'report.json').read_text())
    assert report['errors'] == [] and report['memory']['total'] > 0 and report['sources'][0]['global_batch'] == 4


def test_all_errors_are_listed(
    tool: ModuleType, config: str, segmentation_data: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    (segmentation_data.root / 'ann_dir/val/val_000.png').write_bytes(b'broken')
    options = ['model.decode_head.num_classes=3', 'model.data_preprocessor.seg_pad_val=0',
               'train_dataloader.sampler.batch_size=3']  # fmt: skip
    assert tool.main([config, '--no-memory', '--cfg-options', *options]) == 1
    out = capsys.readouterr().out
    for text in ('4 error(s)', 'model.decode_head.num_classes', 'seg_pad_val', 'sampler.batch_size', 'val_000.png'):
        assert text in out


def test_max_files(tool: ModuleType, config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main([config, '--no-memory', '--max-files', '2']) == 0
    assert 'labels of train (2 of 4 files)' in capsys.readouterr().out


@pytest.mark.parametrize(
    ('arguments', 'expected'),
    [
        (['nowhere.py'], ["config: no file 'nowhere.py'"]),
        (['CONFIG', '--cfg-options', 'data_root=x'], ['data_root', 'variable']),
        (['CONFIG', '--json', 'no/where.json'], ['--json', 'no']),
        (['BROKEN'], ['broken.py']),
    ],
)
def test_user_errors_are_one_line(
    tool: ModuleType, config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str],
    expected: list[str]
) -> None:  # fmt: skip
    (tmp_path / 'broken.py').write_text('model = dict(\n')
    arguments = [{'CONFIG': config, 'BROKEN': str(tmp_path / 'broken.py')}.get(a, a) for a in arguments]
    assert tool.main(arguments) == 2
    message = capsys.readouterr().err.strip().splitlines()[-1]
    assert message.startswith('check_data: error: ') and all(text in message for text in expected), message


def test_impossible_numbers(tool: ModuleType, config: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tool.main([config, '--max-files', '0'])
    assert '--max-files' in capsys.readouterr().err


@pytest.mark.dist
def test_runs_as_a_script_from_anywhere(repo_root: Path, config: str, tmp_path: Path) -> None:
    command = [sys.executable, str(repo_root / 'tools/check_data.py'), config, '--no-memory']
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={'PYTHONPATH': str(repo_root)})
    assert result.returncode == 0 and 'no errors' in result.stdout, result.stderr
