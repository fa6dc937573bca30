"""Fixtures for all tests: paths, small data sets, one thread, fixed seeds."""

import os

# Before torch is imported: the tests run in several processes, and more threads than cores make them slower.
for variable in ('OMP_NUM_THREADS', 'MKL_NUM_THREADS'):
    os.environ.setdefault(variable, '1')

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

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
