"""Fixtures for all tests: paths, small data sets, one thread, fixed seeds."""

import os

# Before torch is imported: the tests run in several processes, and more threads than cores make them slower.
for variable in ('OMP_NUM_THREADS', 'MKL_NUM_THREADS'):
    os.environ.setdefault(variable, '1')

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest
import torch

REPO_ROOT = Path(__file__).resolve().parents[1]
torch.set_num_threads(1)
cv2.setNumThreads(0)


@pytest.fixture(autouse=True)
def fixed_seeds() -> None:
    """Every test starts from the same random numbers, whichever ran before it."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def globals_restored() -> Iterator[None]:
    """A Runner sets default scope and visualizer for the whole process; the next test must not inherit them.

    A visualizer is looked up by its name, so the next runner would write into the log folder of the first one.
    """
    from mmengine.registry import DefaultScope
    from mmengine.visualization import Visualizer
    before = {holder: list(holder._instance_dict.items()) for holder in (DefaultScope, *with_subclasses(Visualizer))}
    yield
    for holder in (DefaultScope, *with_subclasses(Visualizer)):  # each class keeps its own instances
        holder._instance_dict.clear()
        holder._instance_dict.update(before.get(holder, ()))


def with_subclasses(kind: type) -> Iterator[type]:
    """A class and all that are derived from it."""
    yield kind
    for derived in kind.__subclasses__():
        yield from with_subclasses(derived)


@pytest.fixture(scope='session')
def read_base_finds_us() -> bool:
    """Whether mmengine finds the configs of mmssl; 0.10.7 looks into site-packages, also for an editable install."""
    from mmengine.utils import get_installed_path
    return (Path(get_installed_path('mmssl')) / 'configs').is_dir()


@pytest.fixture(scope='session')
def repo_root() -> Path:
    """The checkout."""
    return REPO_ROOT


@pytest.fixture(scope='session')
def shared_data() -> Path:
    """Folder with real data sets (``camvid``, ...): ``MMSSL_SHARED_DATA``, or ``../shared/data``; skips without one."""
    path = Path(os.environ.get('MMSSL_SHARED_DATA', REPO_ROOT.parent / 'shared' / 'data'))
    if not path.is_dir():
        pytest.skip(f'no real data at {path}; set MMSSL_SHARED_DATA to use some')
    return path


def write_segmentation_data(root: Path,
                            num_images: int = 12,
                            size: tuple[int, int] = (48, 40),
                            num_classes: int = 4,
                            labeled: int = 4,
                            val: int = 4,
                            img_suffix: str = '.jpg',
                            ignore_border: bool = True,
                            seed: int = 0) -> SimpleNamespace:
    """Write a small segmentation data set: noisy pictures with one colored rectangle for each class.

    The class is visible in the color, so a small network learns it in a few dozen iterations.

    Args:
        root: Folder that receives ``img_dir/{train,val}``, ``ann_dir/{train,val}`` and ``splits/*.txt``.
        num_images: Training images, labeled and unlabeled together.
        size: Width and height in pixels.
        num_classes: Classes, class 0 being the background.
        labeled: How many of the training images are in ``splits/labeled.txt``; the rest is in ``splits/unlabeled.txt``.
        val: Validation images.
        img_suffix: ``.jpg`` or ``.png``.
        ignore_border: Whether the outermost pixels are 255.
        seed: Same seed, same files.

    Returns:
        Namespace with ``root``, ``classes``, ``palette``, ``labeled``, ``unlabeled``, ``val`` (lists of stems) and the
        arguments ``img_suffix`` and ``size``.
    """
    rng = np.random.default_rng(seed)
    width, height = size
    palette = [[int(40 + 200 * ((37 * c) % 100) / 100), int(255 * ((61 * c) % 100) / 100), 60 + 40 * (c % 4)]
               for c in range(num_classes)]
    names = {
        'train': [f'train_{i:03d}' for i in range(num_images)],
        'val': [f'val_{i:03d}' for i in range(val)],
    }
    for split, stems in names.items():
        (root / 'img_dir' / split).mkdir(parents=True, exist_ok=True)
        (root / 'ann_dir' / split).mkdir(parents=True, exist_ok=True)
        for stem in stems:
            mask = np.zeros((height, width), np.uint8)
            for label in range(1, num_classes):
                x, y = int(rng.integers(0, width * 2 // 3)), int(rng.integers(0, height * 2 // 3))
                mask[y:y + height // 3, x:x + width // 3] = label
            image = np.asarray(palette, np.float64)[mask] + rng.normal(0, 12, (height, width, 3))
            if ignore_border:
                mask[0], mask[-1], mask[:, 0], mask[:, -1] = 255, 255, 255, 255
            image = image.clip(0, 255).astype(np.uint8)
            cv2.imwrite(str(root / 'img_dir' / split / f'{stem}{img_suffix}'), image[..., ::-1])
            cv2.imwrite(str(root / 'ann_dir' / split / f'{stem}.png'), mask)
    splits = {'labeled': names['train'][:labeled], 'unlabeled': names['train'][labeled:], 'val': names['val']}
    (root / 'splits').mkdir(exist_ok=True)
    for name, stems in splits.items():
        (root / 'splits' / f'{name}.txt').write_text('\n'.join(stems) + '\n')
    return SimpleNamespace(
        root=root,
        classes=['background', *(f'shape{c}' for c in range(1, num_classes))],
        palette=palette,
        img_suffix=img_suffix,
        size=size,
        **splits)


@pytest.fixture
def make_segmentation_data(tmp_path: Path) -> Callable[..., SimpleNamespace]:
    """Function that writes a small data set (default folder: ``tmp_path / 'data'``), see its arguments above."""

    def make(root: Path | None = None, **kwargs: object) -> SimpleNamespace:
        return write_segmentation_data(root or tmp_path / 'data', **kwargs)

    return make


@pytest.fixture
def segmentation_data(make_segmentation_data: Callable[..., SimpleNamespace]) -> SimpleNamespace:
    """12 training images (4 labeled) and 4 validation images, 48 x 40 pixels, 4 classes, 255 on the border."""
    return make_segmentation_data()


@pytest.fixture(scope='session')
def image_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three classes by color, 4 labeled, 6 unlabeled and 3 validation images each, 16 x 16 pixels."""
    root, rng = tmp_path_factory.mktemp('classes'), np.random.default_rng(0)
    for split, count in dict(labeled=4, unlabeled=6, val=3).items():
        for channel, name in enumerate(('blue', 'green', 'red')):
            folder = root / split / name
            folder.mkdir(parents=True)
            for number in range(count):
                image = rng.normal(90, 30, (16, 16, 3))
                image[..., channel] += 60
                cv2.imwrite(str(folder / f'{number}.png'), image.clip(0, 255).astype(np.uint8))
    return root


@pytest.fixture
def classification_config(image_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A config of ``mmssl.PseudoLabelClassifier`` that trains 6 iterations, with checkpoints at 3 and 6."""
    from mmengine.config import Config

    # The runner formats the config five times, which takes longer than the training.
    def text(config: Config) -> str:
        return ''.join(f'{key} = {value!r}\n' for key, value in config._cfg_dict.to_dict().items())

    monkeypatch.setattr(Config, 'pretty_text', property(text))

    def make(name: str = 'run', hooks: list[dict] | None = None, truth: bool = True, **semi_train_cfg: Any) -> Any:
        load, pack = dict(type='LoadImageFromFile'), dict(type='PackInputs')
        weak = [dict(type='RandomFlip', prob=0.5, direction='horizontal')]
        strong = [*weak, dict(type='ColorJitter', brightness=0.5, contrast=0.5), pack]
        branches = ['sup', 'unsup_weak', 'unsup_strong']
        folder = dict(type='CustomDataset', data_root=str(image_folder), classes=['blue', 'green', 'red'],
                      with_label=True)  # fmt: skip
        unlabeled = dict(folder, data_prefix='unlabeled')
        if not truth:
            unlabeled = dict(type='mmssl.UnlabeledImageDataset', data_root=str(image_folder), img_path='unlabeled')
        validation = dict(
            batch_size=4, num_workers=0, sampler=dict(type='DefaultSampler', shuffle=False),
            dataset=dict(folder, data_prefix='val', pipeline=[load, pack]))  # fmt: skip
        classifier = dict(
            type='ImageClassifier',
            backbone=dict(type='ResNet_CIFAR', depth=18, stem_channels=4, base_channels=4),
            neck=dict(type='GlobalAveragePooling'),
            head=dict(type='LinearClsHead', num_classes=3, in_channels=32, loss=dict(type='CrossEntropyLoss')),
        )
        return Config(dict(
            default_scope='mmpretrain',
            custom_imports=dict(imports=['mmssl'], allow_failed_imports=False),
            randomness=dict(seed=1),
            log_level='WARNING',
            log_processor=dict(by_epoch=False),
            work_dir=str(tmp_path / name),
            experiment_name=f'{tmp_path.name}-{name}',
            data_preprocessor=dict(mean=[127.5] * 3, std=[60.0] * 3),
            model=dict(type='mmssl.PseudoLabelClassifier', classifier=classifier, semi_train_cfg=semi_train_cfg),
            custom_hooks=[dict(type='mmssl.IterationSeedHook'), *(hooks or [])],
            optim_wrapper=dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.1, momentum=0.9)),
            train_dataloader=dict(
                batch_size=9, num_workers=0, collate_fn=dict(type='pseudo_collate'),
                sampler=dict(type='mmssl.MultiSourceSampler', source_ratio=[1, 2]),
                dataset=dict(type='mmssl.MultiSourceDataset', sources=dict(
                    labeled=dict(folder, data_prefix='labeled', pipeline=[
                        load, dict(type='mmssl.MultiBranch', branches=branches, sup=[*weak, pack])]),
                    unlabeled=dict(unlabeled, pipeline=[
                        load, dict(type='mmssl.MultiBranch', branches=branches, unsup_weak=[*weak, pack],
                                   unsup_strong=strong)])))),
            train_cfg=dict(type='IterBasedTrainLoop', max_iters=6, val_interval=3),
            val_dataloader=validation, val_evaluator=dict(type='Accuracy', topk=(1,)), val_cfg=dict(type='ValLoop'),
            test_dataloader=validation, test_evaluator=dict(type='Accuracy', topk=(1,)),
            test_cfg=dict(type='TestLoop'),
            default_hooks=dict(
                logger=dict(type='LoggerHook', interval=1, log_metric_by_epoch=False),
                checkpoint=dict(type='CheckpointHook', by_epoch=False, interval=3)),
            visualizer=dict(type='UniversalVisualizer', vis_backends=[dict(type='LocalVisBackend')],
                            name=f'{tmp_path.name}-{name}')))  # fmt: skip

    return make
