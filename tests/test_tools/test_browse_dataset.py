"""tools/browse_dataset.py: the pictures show what the pipeline makes, and nothing is overwritten."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.structures import BaseDataElement, PixelData

pytest.importorskip('mmseg')


@pytest.fixture(scope='module')
def tool(repo_root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location('browse_dataset', repo_root / 'tools/browse_dataset.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DATA = """
default_scope = 'mmseg'
randomness = dict(seed=3)
data_root = {root!r}
metainfo = dict(classes={classes!r}, palette={palette!r})
load = [dict(type='LoadImageFromFile')]
labels = [dict(type='LoadAnnotations')]
pack = [dict(type='PackSegInputs')]
preprocessor = dict(type='SegDataPreProcessor', mean=[127.] * 3, std=[60.] * 3, size=(40, 56), bgr_to_rgb=True)
val_dataloader = dict(
    batch_size=1, sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(type='mmssl.SplitSegDataset', data_root=data_root, metainfo=metainfo,
                 data_prefix=dict(img_path='img_dir/val', seg_map_path='ann_dir/val'),
                 pipeline=load + [dict(type='Resize', scale=(24, 20))] + labels + pack))
"""
SUPERVISED = DATA + """
model = dict(type='EncoderDecoder', data_preprocessor=preprocessor)
train_dataloader = dict(
    batch_size=2, sampler=dict(type='InfiniteSampler'),
    dataset=dict(type='mmssl.SplitSegDataset', data_root=data_root, metainfo=metainfo, ann_file='splits/labeled.txt',
                 data_prefix=dict(img_path='img_dir/train', seg_map_path='ann_dir/train'),
                 pipeline=load + labels + [dict(type='RandomFlip', prob=0.5)] + pack))
"""
SEMI = DATA + """
branches = ['sup', 'unsup_weak', 'unsup_strong']
pad = [dict(type='mmssl.TrackPadding'), dict(type='mmssl.Pad', size=(56, 40))]
model = dict(
    type='mmssl.CrossPseudoSupervision',
    data_preprocessor=dict(type='mmssl.MultiBranchDataPreprocessor', data_preprocessor=preprocessor),
    semi_train_cfg=dict(mix=dict(type='mmssl.CutMix')))
sup = dict(type='mmssl.MultiBranch', branches=branches, sup=pack)
unsup = dict(type='mmssl.MultiBranch', branches=branches, unsup_weak=[dict(type='mmssl.PackSemiSegInputs')],
             unsup_strong=[dict(type='PhotoMetricDistortion'), dict(type='mmssl.PackSemiSegInputs')])
train_dataloader = dict(
    batch_size=6, sampler=dict(type='mmssl.MultiSourceSampler', source_ratio=[1, 2]),
    dataset=dict(type='mmssl.MultiSourceDataset', sources=dict(
        labeled=dict(type='mmssl.SplitSegDataset', data_root=data_root, metainfo=metainfo,
                     ann_file='splits/labeled.txt',
                     data_prefix=dict(img_path='img_dir/train', seg_map_path='ann_dir/train'),
                     pipeline=load + labels + [sup]),
        unlabeled=dict(type='mmssl.UnlabeledImageDataset', data_root=data_root, img_path='img_dir/train',
                       ann_file='splits/unlabeled.txt',
                       pipeline=load + pad + [unsup]))))
"""


@pytest.fixture
def write_config(segmentation_data: SimpleNamespace, tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        path = tmp_path / 'config.py'
        data = segmentation_data
        path.write_text(text.format(root=str(data.root), classes=data.classes, palette=data.palette))
        return str(path)

    return write


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_semi_supervised(
    tool: ModuleType, write_config: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / 'out'
    assert tool.main([write_config(SEMI), '--out', str(out), '-n', '4']) == 0
    assert names(out) == [f'{kind}_{i:03d}.png' for kind, n in (('labeled', 4), ('mixed', 2), ('unlabeled', 4))
                          for i in range(n)]  # fmt: skip
    said = capsys.readouterr().out
    assert 'labeled_000.png: sup 48x40, sup labels' in said
    assert 'unlabeled_000.png: unsup_weak 56x40, unsup_strong 56x40' in said
    assert 'mixed_001.png: first, second, mask: white = second, mixed' in said
    for path in out.iterdir():
        assert cv2.imread(str(path)).std() > 5


def test_same_seed_gives_the_same_pictures(
    tool: ModuleType, write_config: Callable[[str], str], tmp_path: Path
) -> None:
    config = write_config(SEMI)
    for name, seed in (('a', '5'), ('b', '5'), ('c', '6')):
        assert tool.main([config, '--out', str(tmp_path / name), '-n', '2', '--seed', seed]) == 0
    content = {name: [path.read_bytes() for path in sorted((tmp_path / name).iterdir())] for name in 'abc'}
    assert content['a'] == content['b'] != content['c']


@pytest.mark.parametrize(('loader', 'title'), [('train_dataloader', 'image 48x40'), ('val_dataloader', 'image 24x20')])
def test_supervised_and_evaluation_pipelines(
    tool: ModuleType, write_config: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str],
    loader: str, title: str
) -> None:  # fmt: skip
    out = tmp_path / 'out'
    assert tool.main([write_config(SUPERVISED), '--out', str(out), '-n', '2', '--loader', loader]) == 0
    name = loader.split('_')[0]
    assert names(out) == [f'{name}_000.png', f'{name}_001.png']
    assert f'{name}_000.png: {title}, labels' in capsys.readouterr().out


def test_views_hold_what_the_pipeline_made(
    tool: ModuleType, write_config: Callable[[str], str], segmentation_data: SimpleNamespace
) -> None:
    from mmssl.utils.checks.sources import config_scope

    cfg = Config.fromfile(write_config(SEMI))
    with config_scope(cfg):
        found, dataset = tool.collect(cfg, 'train_dataloader', 4, seed=3)
        rows = tool.mixed_rows(cfg, found)
    assert dataset.source_names == ['labeled', 'unlabeled']
    root = segmentation_data.root
    # The 4 labeled images are drawn once each; their pictures are the files, in RGB.
    drawn = [found[f'labeled_{i:03d}'][0] for i in range(4)]
    files = [cv2.imread(str(root / f'img_dir/train/{stem}.jpg'))[..., ::-1] for stem in segmentation_data.labeled]
    assert sorted(view.image.tobytes() for view in drawn) == sorted(np.ascontiguousarray(f).tobytes() for f in files)
    weak, strong = found['unlabeled_000']
    assert (weak.branch, strong.branch) == ('unsup_weak', 'unsup_strong')
    assert weak.labels is None and weak.valid[:, :48].all() and not weak.valid[:, 48:].any()
    assert not np.array_equal(weak.image, strong.image) and np.array_equal(weak.valid, strong.valid)
    # The mixed picture is the first image outside the mask and the second inside.
    first, second, mask, mixed = (panel.values for panel in rows['mixed_000'][0])
    inside = mask[..., 0] == 255
    assert 0 < inside.mean() < 1
    np.testing.assert_array_equal(mixed[inside], second[inside])
    np.testing.assert_array_equal(mixed[~inside], first[~inside])


def test_padding_is_striped_and_ignored_labels_are_gray(tool: ModuleType) -> None:
    image = np.full((20, 30, 3), 100, np.uint8)
    valid = np.ones((20, 30), bool)
    valid[:, 20:] = False
    shown = tool.with_padding(image, valid)
    assert (shown[:, :20] == 100).all()
    assert {tuple(int(v) for v in color) for color in shown[:, 20:].reshape(-1, 3)} == set(tool.STRIPES)
    labels = np.zeros((20, 30), np.uint8)
    labels[10:] = 255
    overlay = tool.with_labels(image, labels, [[200, 0, 0]])
    assert overlay[0, 0].tolist() == [155, 45, 45]
    assert overlay[19, 0].tolist() == [115, 115, 115]


@pytest.mark.parametrize('values', [torch.rand(3, 4, 5), torch.randn(3, 4, 5), torch.rand(1, 4, 5)])
def test_float_images_use_the_full_range(tool: ModuleType, values: torch.Tensor) -> None:
    picture = tool.to_rgb(values, is_bgr=False)
    assert picture.shape == (4, 5, 3) and picture.min() == 0 and picture.max() == 255


def test_hidden_labels_are_called_so(tool: ModuleType) -> None:
    sample = BaseDataElement(gt_sem_seg=PixelData(data=torch.zeros(1, 8, 8, dtype=torch.long)))
    item = dict(
        inputs=dict(sup=None, unsup_weak=torch.zeros(3, 8, 8, dtype=torch.uint8)),
        data_samples=dict(sup=None, unsup_weak=sample),
    )
    (view,) = tool.views_of(item, is_bgr=True)
    titles = [panel.title for panel in tool.panels_of(view, [[1, 2, 3]])]
    assert titles == ['unsup_weak 8x8', 'unsup_weak hidden labels']


def test_nothing_is_overwritten(
    tool: ModuleType, write_config: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / 'out'
    out.mkdir()
    (out / 'train_000.png').write_text('mine')
    arguments = [write_config(SUPERVISED), '--out', str(out), '-n', '1']
    assert tool.main(arguments) == 2
    assert '--force' in capsys.readouterr().err and (out / 'train_000.png').read_text() == 'mine'
    assert tool.main([*arguments, '--force']) == 0
    assert (out / 'train_000.png').read_bytes()[:4] == b'\x89PNG'


@pytest.mark.parametrize(
    ('arguments', 'expected'),
    [
        (['nowhere.py', '--out', 'x'], ["config: no file 'nowhere.py'"]),
        (['CONFIG', '--out', 'x', '--loader', 'test_dataloader'], ['test_dataloader.dataset']),
        (['CONFIG', '--out', 'config.py'], ['--out', 'is a file']),
        (['CONFIG', '--out', 'x', '--cfg-options', 'train_dataloader.dataset.data_root=/no/where'], ['/no/where']),
        (['CONFIG', '--out', 'x', '--cfg-options', 'train_dataloader.dataset.pipeline=[]'], ['packing']),
    ],
)
def test_user_errors_are_one_line(
    tool: ModuleType, write_config: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], arguments: list[str], expected: list[str]
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    config = write_config(SUPERVISED)
    assert tool.main([config if argument == 'CONFIG' else argument for argument in arguments]) == 2
    message = capsys.readouterr().err.strip().splitlines()[-1]
    assert message.startswith('browse_dataset: error: ') and all(text in message for text in expected), message
    assert not (tmp_path / 'x').exists()
