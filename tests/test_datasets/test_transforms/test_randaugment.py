"""The strong augmentation of the configs against PIL, operation by operation, and its distribution."""

from collections import Counter

import cv2
import mmcv
import numpy as np
import pytest
from mmengine.config import Config
from mmengine.registry import TRANSFORMS, DefaultScope
from PIL import Image, ImageEnhance, ImageOps

pytest.importorskip('mmpretrain')

from mmssl.datasets.transforms.histograms import auto_contrast, contrast, equalize


@pytest.fixture(scope='module')
def augment(repo_root):
    """RandAugment as the configs have it."""
    import mmpretrain.datasets  # noqa: F401
    cfg = Config.fromfile(repo_root / 'configs' / '_base_' / 'methods' / 'randaugment.py')
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        return TRANSFORMS.build(cfg.randaugment)


def pictures(count=6, side=32):
    """Smooth colored images with noise, BGR."""
    random = np.random.RandomState(3)
    for number in range(count):
        coarse = random.randint(0, 256 if number % 2 else 120, (5, 5, 3)).astype(np.uint8)
        image = cv2.resize(coarse, (side, side), interpolation=cv2.INTER_CUBIC).astype(int)
        yield (image + random.randint(-9, 10, image.shape)).clip(0, 255).astype(np.uint8)


def affine(image, *numbers):
    return image.transform(image.size, Image.AFFINE, numbers)


# C.6: lowest and highest argument of each operation, and how PIL does it. Factors are 1 + magnitude in mmpretrain.
OPERATIONS = {
    'AutoContrast': (None, lambda im, v: ImageOps.autocontrast(im)),
    'Brightness': ((0.05, 0.95), lambda im, v: ImageEnhance.Brightness(im).enhance(v)),
    'Color': ((0.05, 0.95), lambda im, v: ImageEnhance.Color(im).enhance(v)),
    'Contrast': ((0.05, 0.95), lambda im, v: ImageEnhance.Contrast(im).enhance(v)),
    'Equalize': (None, lambda im, v: ImageOps.equalize(im)),
    'Identity': (None, lambda im, v: im),
    'Posterize': ((4, 8), lambda im, v: ImageOps.posterize(im, int(v))),
    'Rotate': ((-30, 30), lambda im, v: im.rotate(v)),
    'Sharpness': ((0.05, 0.95), lambda im, v: ImageEnhance.Sharpness(im).enhance(v)),
    'ShearX': ((-0.3, 0.3), lambda im, v: affine(im, 1, v, 0, 0, 1, 0)),
    'ShearY': ((-0.3, 0.3), lambda im, v: affine(im, 1, 0, 0, v, 1, 0)),
    'Solarize': ((0, 256), lambda im, v: ImageOps.solarize(im, v)),
    'TranslateX': ((-0.3, 0.3), lambda im, v: affine(im, 1, 0, v * im.size[0], 0, 1, 0)),
    'TranslateY': ((-0.3, 0.3), lambda im, v: affine(im, 1, 0, 0, 0, 1, v * im.size[1])),
}


def drawn(transform, name):
    """The argument that a transform draws, in the terms of the table."""
    magnitude = transform.random_magnitude()
    if name in ('Brightness', 'Color', 'Contrast', 'Sharpness'):
        return 1 + transform.random_negative(magnitude)
    if name == 'Posterize':
        return magnitude + 1  # rounded up there, down here
    return magnitude if name == 'Solarize' else transform.random_negative(magnitude)


@pytest.mark.parametrize('number, name', list(enumerate(OPERATIONS)))
def test_arguments_are_uniform_in_their_range(augment, number, name):
    transform, (bounds, _) = augment.transforms[number], OPERATIONS[name]
    assert transform.prob == (0 if name == 'Identity' else 1)
    if bounds is None:
        assert transform.magnitude_range is None
        return
    low, high = bounds
    values = (np.array([drawn(transform, name) for _ in range(2000)]) - low) / (high - low)
    assert values.min() >= 0 and values.max() <= 1
    # Kolmogorov-Smirnov: 0.05 is exceeded by chance about once in 10,000.
    distance = np.abs(np.sort(values) - (np.arange(2000) + 0.5) / 2000).max()
    assert distance < 0.05


@pytest.mark.parametrize('number, name', list(enumerate(OPERATIONS)))
def test_operations_are_those_of_pil(augment, number, name, monkeypatch):
    """To a gray level (color: two); the outermost pixels of sharpness, and what rounding moves by a pixel, aside.

    Shearing is about the middle of the first pixel here and about its corner there, half of 0.3 pixels apart at most.
    """
    transform, (bounds, reference) = augment.transforms[number], OPERATIONS[name]
    tolerated = {'Rotate': 0.01, 'ShearX': 0.16, 'ShearY': 0.16, 'TranslateX': 0.001, 'TranslateY': 0.001}
    for share in (0.11, 0.57, 0.93):
        value = None
        if bounds is not None:
            value = bounds[0] + share * (bounds[1] - bounds[0])
            is_factor = name in ('Brightness', 'Color', 'Contrast', 'Sharpness')
            magnitude = value - 1 if is_factor or name == 'Posterize' else value
            monkeypatch.setattr(transform, 'random_magnitude', lambda magnitude=magnitude: magnitude, raising=True)
            monkeypatch.setattr(transform, 'random_negative', lambda number: number)
        for image in pictures():
            pil = Image.fromarray(np.ascontiguousarray(image[..., ::-1]))
            ours = transform({'img': image.copy()})['img'][..., ::-1].astype(int)
            # Rotations and shifts the other way are as probable.
            wanted = [reference(pil, value)] + ([reference(pil, -value)] if name in tolerated else [])
            wrong = []
            for picture in wanted:
                difference = np.abs(ours - np.asarray(picture).astype(int))
                if name == 'Sharpness':
                    difference = difference[1:-1, 1:-1]
                wrong.append((difference > (2 if name == 'Color' else 1)).any(axis=-1).mean())
            assert min(wrong) <= tolerated.get(name, 0.), (share, wrong)


def test_three_operations_with_replacement(augment):
    """Each of 14 as often as the others, also twice in one image."""
    assert len(augment.transforms) == 14
    triples = [augment.random_policy_indices() for _ in range(4000)]
    assert {len(triple) for triple in triples} == {3}
    count = Counter(index for triple in triples for index in triple)
    expected = 12_000 / 14
    assert all(abs(count[index] - expected) < 5 * expected**0.5 for index in range(14))
    repeated = np.mean([len(set(triple)) < 3 for triple in triples])
    assert repeated == pytest.approx(1 - 13 * 12 / 14**2, abs=0.03)


def test_square(repo_root):
    """C.6: half of the image at most, every center, cut off at the border, in its color."""
    cfg = Config.fromfile(repo_root / 'configs' / '_base_' / 'datasets' / 'views_32.py')
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        cutout = TRANSFORMS.build(cfg.strong[-1])
    image = np.zeros((32, 32, 3), np.uint8)
    covered, sides = np.zeros((32, 32)), []
    for _ in range(2000):
        changed = cutout({'img': image})['img']
        mask = changed.any(axis=2)
        assert (changed[mask] == (114, 123, 125)).all()
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        assert mask.sum() == len(rows) * len(columns)
        covered += mask
        sides.append(max(len(rows), len(columns)))
    assert max(sides) == 16 and min(sides) >= 1
    assert covered.min() > 0
    # A whole side of 1 to 16, each as probable; squares at the border lose some.
    assert 7 < np.mean(sides) < 9


def test_lookup_tables_equal_the_originals():
    """Bit for bit, also for flat, dark and one-channel images."""
    random = np.random.RandomState(0)
    images = [*pictures(), np.full((8, 8, 3), 77, np.uint8), np.zeros((6, 7, 3), np.uint8)]
    images += [random.randint(100, 104, (32, 32, 3)).astype(np.uint8), random.randint(0, 256, (96, 96, 3), np.uint8)]
    for image in images:
        assert (auto_contrast(image) == mmcv.auto_contrast(image)).all()
        assert (equalize(image) == mmcv.imequalize(image)).all()
        for factor in (0.05, 0.4, 0.95, 1.7):
            assert (contrast(image, factor) == mmcv.adjust_contrast(image, factor)).all()
        for function in (auto_contrast, equalize):
            assert (function(image[..., 0]) == function(image)[..., 0]).all()
        gray = np.repeat(image[..., :1], 3, axis=2)
        assert (contrast(image[..., 0], 0.3) == contrast(gray, 0.3)[..., 0]).all()
