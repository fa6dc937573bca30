"""``tools/demo/make_shapes.py``: the same pixels everywhere, exact labels, and no overwriting."""

import hashlib
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

REPO = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location('make_shapes', REPO / 'tools/demo/make_shapes.py')
shapes = importlib.util.module_from_spec(spec)
spec.loader.exec_module(shapes)

# SHA-256 of the pixels of the first four training images and labels, with seed 0. A change needs a new VERSION.
GOLDEN = '51b64ec6d0261759dbb0c784c0e93b8a9a9445cc69c8560d6752a2591c1a5c97'
SMALL = dict(train=6, val=2, labeled=2, size=48, seed=0)


def read(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path))


def test_pixels_are_the_same_on_every_machine() -> None:
    digest = hashlib.sha256()
    for index in range(4):
        for array in shapes.draw(0, 'train', index, 96):
            digest.update(array.tobytes())
    assert digest.hexdigest() == GOLDEN


def test_layout_lists_and_label_values(tmp_path: Path) -> None:
    assert shapes.make_shapes(tmp_path, **SMALL)
    for split, count in (('train', 6), ('val', 2)):
        images, masks = (sorted((tmp_path / folder / split).iterdir()) for folder in ('img_dir', 'ann_dir'))
        assert len(images) == count and [path.name for path in images] == [path.name for path in masks]
        assert read(images[0]).shape == (48, 48, 3) and read(masks[0]).shape == (48, 48)
    labeled, unlabeled = ((tmp_path / f'splits/{name}.txt').read_text().split() for name in ('labeled', 'unlabeled'))
    assert len(labeled) == 2 and sorted(labeled + unlabeled) == [f'{index:04}' for index in range(6)]
    values = {int(value) for path in (tmp_path / 'ann_dir').rglob('*.png') for value in np.unique(read(path))}
    assert values <= set(range(6)) and 0 in values and len(values) >= 5


def test_every_class_is_frequent_enough_to_be_learned() -> None:
    masks = np.stack([shapes.draw(0, 'train', index, 96)[1] for index in range(30)])
    shares = np.bincount(masks.ravel(), minlength=6) / masks.size
    assert 0.3 < shares[0] < 0.85 and shares[1:].min() > 0.01
    # the labeled images of the demo show all classes
    assert len(np.unique(masks[:10])) == 6


def test_seed_and_split_change_the_pixels() -> None:
    first = shapes.draw(0, 'train', 0, 48)[0]
    assert not np.array_equal(first, shapes.draw(1, 'train', 0, 48)[0])
    assert not np.array_equal(first, shapes.draw(0, 'val', 0, 48)[0])
    assert np.array_equal(first, shapes.draw(0, 'train', 0, 48)[0])


@pytest.mark.parametrize('rotation', shapes.ROTATIONS)
@pytest.mark.parametrize('label', range(1, 6))
def test_forms_have_their_size(label: int, rotation: tuple[int, int, int]) -> None:
    y, x = np.mgrid[:81, :81].astype(np.int64)
    inside = shapes.form(label, x - 40, y - 40, 30, rotation)
    # Area of each form over that of its circle, 30 pixels in radius.
    expected = {1: 1, 2: 3 / 4, 3: 4 * 0.64 / np.pi, 4: 1.5**2 * 4 / 7 / np.pi, 5: (8 / 3 - 4 / 9) / np.pi}
    assert inside.sum() / (np.pi * 30**2) == pytest.approx(expected[label], rel=0.08)
    assert not inside[0].any() and not inside[:, 0].any()


def test_a_second_call_reuses_and_other_settings_are_refused(tmp_path: Path) -> None:
    shapes.make_shapes(tmp_path, **SMALL)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob('*.png')}
    assert not shapes.make_shapes(tmp_path, **SMALL)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    with pytest.raises(FileExistsError, match=tmp_path.name):
        shapes.make_shapes(tmp_path, **dict(SMALL, seed=1))


@pytest.mark.parametrize('change, message', [
    (dict(labeled=6), '--labeled'), (dict(labeled=0), '--labeled'), (dict(val=0), '--val'), (dict(size=8), '--size'),
])  # yapf: disable
def test_bad_numbers_are_refused(change: dict[str, int], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        shapes.make_shapes(tmp_path / 'out', **dict(SMALL, **change))
    assert not (tmp_path / 'out').exists()
