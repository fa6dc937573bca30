"""CutMix for segmentation: box masks drawn from (seed, step, index) alone, and mixing by mask."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

# Keeps these draws apart from other streams that are seeded from the same numbers.
STREAM = 0xC07


def cutmix_masks(num: int,
                 height: int,
                 width: int,
                 seed: int,
                 step: int,
                 *,
                 index_offset: int = 0,
                 indices: Sequence[int] | None = None,
                 num_boxes: int = 3,
                 area_range: tuple[float, float] = (0.25, 0.5),
                 aspect_range: tuple[float, float] | None = None,
                 prob: float = 1.,
                 toggle: bool = True,
                 device: torch.device | str | None = None,
                 dtype: torch.dtype = torch.float32) -> Tensor:
    """Binary box masks, one per sample; each depends on (seed, step, its global index) and on nothing else.

    Hence a run that is resumed, or spread over another number of processes, draws the same masks: a process names its
    samples by their place in the global batch (``index_offset`` or ``indices``).

    For each of ``num_boxes`` boxes an area share a ~ U(``area_range``) is drawn, a height share exp(u ln a) with
    u ~ U(0, 1), and the width share that gives the area; both are multiplied by sqrt(1 / ``num_boxes``), rounded to
    pixels, and the box is placed uniformly inside the image. The defaults are those of CPS and FPL.

    With ``aspect_range``, as in UniMatch (Yang et al., CVPR 2023), height over width is r ~ U(``aspect_range``), height
    and width shares are sqrt(a r) and sqrt(a / r), and the upper left corner is uniform in the image; r and corner are
    drawn until the box fits. UniMatch has one box, a ~ U(0.02, 0.4), r ~ U(0.3, 1 / 0.3), and no box at all with
    probability 1 - ``prob`` = 0.5.

    Args:
        num: Number of masks, >= 0.
        height: Height of a mask in pixels, >= 1.
        width: Width of a mask in pixels, >= 1.
        seed: Seed of the run, >= 0.
        step: Iteration, >= 0.
        index_offset: Global index of the first mask, >= 0; the others follow.
        indices: Global index of each mask, ``num`` numbers >= 0, in place of ``index_offset``.
        num_boxes: Boxes per mask, >= 1.
        area_range: Smallest and largest area share of all boxes together, 0 < low <= high <= 1.
        aspect_range: Smallest and largest height over width of a box, 0 < low <= high, or None for CPS's shapes.
        prob: Probability of a mask that has boxes, in (0, 1]; the others are 0.
        toggle: Where boxes overlap an even number of times the mask is 0 again (CPS); otherwise 1.
        device: Of the result.
        dtype: Of the result.

    Returns:
        Masks of zeros and ones, (num, 1, height, width).

    Raises:
        ValueError: An argument is out of its range.
    """
    low, high = area_range
    if not 0 < low <= high <= 1:
        raise ValueError(f'cutmix_masks: `area_range` must be 0 < low <= high <= 1, got {tuple(area_range)}')
    if aspect_range is not None and not 0 < aspect_range[0] <= aspect_range[1]:
        raise ValueError(f'cutmix_masks: `aspect_range` must be 0 < low <= high, got {tuple(aspect_range)}')
    if not 0 < prob <= 1:
        raise ValueError(f'cutmix_masks: `prob` must be in (0, 1], got {prob}')
    if num_boxes < 1 or height < 1 or width < 1:
        raise ValueError('cutmix_masks: `num_boxes`, `height` and `width` must be at least 1, '
                         f'got {num_boxes}, {height}, {width}')
    if indices is None:
        indices = range(index_offset, index_offset + num)
    elif len(indices) != num:
        raise ValueError(f'cutmix_masks: `indices` must name {num} masks, got {len(indices)}')
    if num < 0 or min(seed, step, *indices, 0) < 0:
        raise ValueError('cutmix_masks: `num`, `seed`, `step` and the indices must not be negative, '
                         f'got {num}, {seed}, {step} and {list(indices)}')
    masks = np.zeros((num, 1, height, width), dtype=bool)
    size = np.array([height, width])
    for mask, index in zip(masks[:, 0], indices, strict=True):
        rng = np.random.Generator(np.random.Philox(np.random.SeedSequence((STREAM, seed, step, index))))
        if prob < 1 and rng.random() >= prob:
            continue
        for _ in range(num_boxes):
            area = low + (high - low) * rng.random()
            if aspect_range is None:
                height_share = np.exp(rng.random() * np.log(area))
                shares = np.array([height_share, area / height_share]) * np.sqrt(1 / num_boxes)
                box = np.round(shares * size).astype(int)
                top, left = np.round((size - box) * rng.random(2)).astype(int)
            else:
                shares, corner = _fitting_box(rng, area / num_boxes, aspect_range)
                box, (top, left) = (shares * size).astype(int), (corner * size).astype(int)
            region = mask[top:top + box[0], left:left + box[1]]
            region[:] = ~region if toggle else True
    return torch.from_numpy(masks).to(device=device, dtype=dtype)


def _fitting_box(rng: np.random.Generator, area: float,
                 aspect_range: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Sides and upper left corner of a box of an area share, in shares of the image's sides, each an array of two."""
    low, high = aspect_range
    # The number of draws is bounded: no box of area 1 but the whole image fits, and none of some aspects at all.
    for _ in range(1000):
        aspect = low + (high - low) * rng.random()
        shares, corner = np.sqrt([area * aspect, area / aspect]), rng.random(2)
        if (shares + corner <= 1).all():
            return shares, corner
    shares = np.minimum(shares, 1)
    return shares, (1 - shares) * corner


def mix(a: Tensor, b: Tensor, mask: Tensor) -> Tensor:
    """``a`` where ``mask`` is 0 and ``b`` where it is 1; exact for any dtype, whatever the hidden side holds.

    For images, logits (mixing logits equals mixing probabilities, the mask being binary), labels and valid masks.

    Args:
        a: Any dtype, (N, *).
        b: Same dtype, shape broadcastable to ``a``.
        mask: Zeros and ones (any dtype), broadcastable to ``a``: (N, 1, H, W) for (N, C, H, W), (N, H, W) for labels.

    Returns:
        The mixture, dtype of ``a``.
    """
    return torch.where(mask.bool(), b, a)
