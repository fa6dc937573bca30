"""Make a small segmentation data set: shapes over textures, whose class is the form and not the color.

Everything is computed in whole numbers from ``numpy.random.RandomState``, whose stream numpy keeps for ever, so the
same seed gives the same pixels on every machine.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = ('background', 'disk', 'ring', 'square', 'triangle', 'cross')
PALETTE = [[70, 70, 70], [230, 80, 60], [250, 190, 40], [60, 140, 230], [90, 190, 90], [180, 90, 200]]
VERSION = 1  # of the drawing: another one draws other pixels
SPLITS = ('train', 'val')
# Rotations with whole-number coordinates: (cos, sin, hypotenuse).
ROTATIONS = ((1, 0, 1), (4, 3, 5), (3, 4, 5), (12, 5, 13), (5, 12, 13), (15, 8, 17), (8, 15, 17), (0, 1, 1))
# A hint, no more: two colors that a class prefers.
HINTS = {1: ((210, 70, 60), (150, 40, 40)), 2: ((210, 150, 50), (160, 60, 40)), 3: ((60, 90, 210), (40, 50, 140)),
         4: ((70, 180, 70), (40, 90, 130)), 5: ((160, 60, 190), (60, 60, 150))}  # yapf: disable
TEXTURES = 5
COLOR_PERCENT = 90
TEXTURE_PERCENT = 70
BACKGROUND_CONTRAST = 30  # percent
NOISE = 15


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('out', type=Path, help='folder that gets img_dir, ann_dir and splits')
    parser.add_argument('--train', type=int, default=200, help='training images (default: %(default)s)')
    parser.add_argument('--val', type=int, default=40, help='validation images (default: %(default)s)')
    parser.add_argument('--labeled', type=int, default=6, help='training images with labels (default: %(default)s)')
    parser.add_argument('--size', type=int, default=96, help='width and height (default: %(default)s)')
    parser.add_argument('--seed', type=int, default=0, help='default: %(default)s')
    return parser.parse_args(argv)


def texture(rng: np.random.RandomState, x: np.ndarray, y: np.ndarray, colors: np.ndarray,
            kind: int | None = None) -> np.ndarray:
    """A pattern of two colors.

    Args:
        rng: Where the pattern is drawn from.
        x: Column numbers, shape (H, W).
        y: Row numbers, shape (H, W).
        colors: Two RGB colors, shape (2, 3).
        kind: 0 to 4: stripes, checks, dots, waves, blocks. Default: drawn.

    Returns:
        int64, shape (H, W, 3), within 0 to 255.
    """
    drawn, period = _integer(rng, 0, TEXTURES), _integer(rng, 3, 7)
    kind = drawn if kind is None else kind
    cos, sin, hypotenuse = ROTATIONS[_integer(rng, 0, len(ROTATIONS))]
    u, v = (cos * x + sin * y) // hypotenuse, (cos * y - sin * x) // hypotenuse
    if kind == 0:  # stripes
        share = (u // period % 2) * 255
    elif kind == 1:  # checks
        share = ((u // period + v // period) % 2) * 255
    elif kind == 2:  # dots
        share = (((u % (2 * period) - period)**2 + (v % (2 * period) - period)**2) * 2 < period**2) * 255
    elif kind == 3:  # a slow wave of triangles
        share = np.abs(u % (4 * period) - 2 * period) * 255 // (2 * period)
    else:  # blocks of random brightness
        blocks = rng.randint(0, 256, size=(64, 64), dtype=np.int64)
        share = blocks[y // (period // 2 + 1) % 64, x // (period // 2 + 1) % 64]
    share = share[..., None]
    return (colors[0] * share + colors[1] * (255 - share)) // 255


def form(label: int, dx: np.ndarray, dy: np.ndarray, radius: int, rotation: tuple[int, int, int]) -> np.ndarray:
    """Which pixels belong to a shape.

    Args:
        label: Class of the shape, at least 1.
        dx: Columns from its center, shape (H, W).
        dy: Rows from its center, shape (H, W).
        radius: Its size in pixels.
        rotation: An entry of ``ROTATIONS``.

    Returns:
        Bool, shape (H, W).
    """
    cos, sin, hypotenuse = rotation
    u, v, size = cos * dx + sin * dy, cos * dy - sin * dx, radius * hypotenuse
    squared = u * u + v * v
    if CLASSES[label] == 'disk':
        return squared <= size * size
    if CLASSES[label] == 'ring':
        return (squared <= size * size) & (4 * squared >= size * size)
    if CLASSES[label] == 'square':
        return (5 * np.abs(u) <= 4 * size) & (5 * np.abs(v) <= 4 * size)
    if CLASSES[label] == 'triangle':
        return (2 * v <= size) & (7 * np.abs(u) <= 4 * (size + v))
    arm = np.minimum(np.abs(u), np.abs(v))
    return (3 * arm <= size) & (np.maximum(np.abs(u), np.abs(v)) <= size)


def draw(seed: int, split: str, index: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """One image and its labels.

    Args:
        seed: Seed of the data set.
        split: ``'train'`` or ``'val'``.
        index: Number of the image.
        size: Width and height.

    Returns:
        RGB, uint8, shape (size, size, 3); labels 0 to 5, uint8, shape (size, size).
    """
    rng = np.random.RandomState([seed, SPLITS.index(split), index, VERSION])
    y, x = np.mgrid[:size, :size].astype(np.int64)
    image = texture(rng, x, y, _background_colors(rng))
    mask = np.zeros((size, size), np.uint8)
    # Patches of other textures, without a form of their own: an edge of color alone says nothing.
    for _ in range(_integer(rng, 1, 4)):
        left, top = _integer(rng, -size // 4, size), _integer(rng, -size // 4, size)
        patch = (x >= left) & (x < left + _integer(rng, size // 6, size // 2))
        patch &= (y >= top) & (y < top + _integer(rng, size // 6, size // 2))
        image[patch] = texture(rng, x, y, _background_colors(rng))[patch]
    for _ in range(_integer(rng, 3, 6)):
        label = _integer(rng, 1, len(CLASSES))
        colors = np.array(HINTS[label], dtype=np.int64) if _integer(rng, 0, 100) < COLOR_PERCENT else _colors(rng)
        kind = label - 1 if _integer(rng, 0, 100) < TEXTURE_PERCENT else None
        colors = (colors + rng.randint(-40, 41, size=(2, 3), dtype=np.int64)).clip(0, 255)
        radius = _integer(rng, size // 7, size // 3)
        rotation = ROTATIONS[_integer(rng, 0, len(ROTATIONS))]
        inside = form(label, x - _integer(rng, 0, size), y - _integer(rng, 0, size), radius, rotation)
        image[inside] = texture(rng, x, y, colors, kind)[inside]
        mask[inside] = label
    # Light from one side, then noise.
    light = 70 + (x * _integer(rng, -30, 31) + y * _integer(rng, -30, 31)) // size + _integer(rng, -15, 16)
    image = image * light[..., None] // 70
    image = image + rng.randint(-NOISE, NOISE + 1, size=image.shape, dtype=np.int64)
    return image.clip(0, 255).astype(np.uint8), mask


def _integer(rng: np.random.RandomState, low: int, high: int) -> int:
    # The default type differs between platforms, and with it the stream.
    return int(rng.randint(low, high, dtype=np.int64))


def _colors(rng: np.random.RandomState) -> np.ndarray:
    return rng.randint(40, 216, size=(2, 3), dtype=np.int64)


def _background_colors(rng: np.random.RandomState) -> np.ndarray:
    colors = _colors(rng)
    middle = colors.sum(axis=0, keepdims=True) // 2
    return middle + (colors - middle) * BACKGROUND_CONTRAST // 100


def make_shapes(out: Path, train: int, val: int, labeled: int, size: int, seed: int) -> bool:
    """Write the data set, unless the very same one is there.

    Args:
        out: Its folder.
        train: Number of training images.
        val: Number of validation images.
        labeled: How many training images are in ``splits/labeled.txt``; the others are in ``splits/unlabeled.txt``.
        size: Width and height of the images.
        seed: Same seed, same pixels.

    Returns:
        Whether anything was written.

    Raises:
        ValueError: If a number makes no data set.
        FileExistsError: If ``out`` holds something else.
    """
    if not 0 < labeled < train:
        raise ValueError(f'--labeled must be at least 1 and below --train ({train}), got {labeled}')
    if val < 1:
        raise ValueError(f'--val must be at least 1, got {val}')
    if size < 32:
        raise ValueError(f'--size must be at least 32, got {size}')
    settings = dict(train=train, val=val, labeled=labeled, size=size, seed=seed, version=VERSION)
    stamp = out / 'shapes.json'
    if stamp.is_file() and json.loads(stamp.read_text(encoding='utf-8')) == settings:
        return False
    if out.exists() and any(out.iterdir()):
        raise FileExistsError(f'{out} holds other files or other shapes already; name another folder')
    for split, count in zip(SPLITS, (train, val), strict=True):
        for folder in ('img_dir', 'ann_dir'):
            (out / folder / split).mkdir(parents=True, exist_ok=True)
        for index in range(count):
            image, mask = draw(seed, split, index, size)
            Image.fromarray(image).save(out / 'img_dir' / split / f'{index:04}.png')
            Image.fromarray(mask).save(out / 'ann_dir' / split / f'{index:04}.png')
    (out / 'splits').mkdir(exist_ok=True)
    names = [f'{index:04}\n' for index in range(train)]
    (out / 'splits/labeled.txt').write_text(''.join(names[:labeled]), encoding='utf-8')
    (out / 'splits/unlabeled.txt').write_text(''.join(names[labeled:]), encoding='utf-8')
    stamp.write_text(json.dumps(settings) + '\n', encoding='utf-8')  # last: only a complete set has it
    return True


if __name__ == '__main__':
    args = vars(parse_args())
    try:
        print(f'{"wrote" if make_shapes(**args) else "already there:"} {args["out"]}')
    except (ValueError, FileExistsError) as error:
        sys.exit(f'error: {error}')
