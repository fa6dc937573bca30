"""Equal spread, stretching and contrast of 8-bit images by lookup tables.

What they return equals mmcv's ``imequalize``, ``auto_contrast`` and ``adjust_contrast``, which PIL's operations of
these names are; those build histograms with ``np.histogram``, where most of the time of RandAugment on small images
went.
"""

import cv2
import numpy as np

LEVELS = np.arange(256)


def _look_up(image: np.ndarray, tables: np.ndarray) -> np.ndarray:
    """Replace the values of each channel by those in its table.

    Args:
        image: uint8, (H, W, C), or (H, W) for one channel.
        tables: uint8, (C, 256).
    """
    channels = image if image.ndim == 3 else image[..., None]
    return cv2.LUT(channels, np.ascontiguousarray(tables.T)[None]).reshape(image.shape)


def _channels(image: np.ndarray) -> np.ndarray:
    """The values of each channel, (C, H * W)."""
    return image.reshape(-1, image.shape[2] if image.ndim == 3 else 1).T


def auto_contrast(image: np.ndarray) -> np.ndarray:
    """Stretch each channel to the range 0 to 255.

    Args:
        image: uint8, (H, W, C) or (H, W).

    Returns:
        A new image of the same kind; a channel of one value stays as it is.
    """
    values = _channels(image)
    low, high = values.min(axis=1).astype(float), values.max(axis=1).astype(float)
    flat = low >= high
    scale = np.where(flat, 1., 255. / np.where(flat, 1., high - low))
    tables = LEVELS * scale[:, None] + np.where(flat, 0., -low * scale)[:, None]
    return _look_up(image, tables.clip(0, 255).astype(np.uint8))


def equalize(image: np.ndarray) -> np.ndarray:
    """Spread the values of each channel so that all ranges occur about equally often.

    Args:
        image: uint8, (H, W, C) or (H, W).

    Returns:
        A new image of the same kind.
    """
    tables = []
    for values in _channels(image):
        histogram = np.bincount(values, minlength=256)
        step = int(len(values) - histogram[values.max()]) // 255
        if step == 0:
            tables.append(LEVELS)
            continue
        table = (np.cumsum(histogram) + step // 2) // step
        tables.append(np.concatenate(([0], table[:-1])).clip(max=255))
    return _look_up(image, np.stack(tables).astype(np.uint8))


def contrast(image: np.ndarray, factor: float) -> np.ndarray:
    """Blend an image with its mean gray level.

    Args:
        image: uint8, BGR, (H, W, 3), or gray, (H, W).
        factor: 0 is plain gray, 1 is the image itself.

    Returns:
        A new image of the same kind.
    """
    gray = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY) if image.ndim == 3 else image
    mean = round(int(gray.sum(dtype=np.int64)) / gray.size)
    levels = LEVELS[None].astype(np.float32)
    table = cv2.addWeighted(levels, factor, np.full_like(levels, mean), 1 - factor, 0)
    return cv2.LUT(image, table.clip(0, 255).astype(np.uint8))
