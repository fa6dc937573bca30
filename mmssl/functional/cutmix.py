r"""CutMix with the box masks of CPS, drawn without state.

Cut a region of one image, paste it onto another, and do the same with the logits that make their pseudo labels. For a
binary mask, mixing logits and then taking the softmax is the same as mixing probabilities.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


def cutmix_mask(
    height: int,
    width: int,
    rng: np.random.Generator,
    num_boxes: int = 3,
    area_range: tuple[float, float] = (0.25, 0.5),
) -> Tensor:
    r"""One mask of toggled boxes.

    For each box, an area share :math:`a \sim U(area\_range)` is split into a height share
    :math:`h = e^{u \ln a},\ u \sim U(0, 1)`, and a width share :math:`a / h`; both are scaled by
    :math:`\sqrt{1 / num\_boxes}` and rounded to pixels. The box lies uniformly inside the image and toggles its
    rectangle, so where two overlap the mask is 0 again.

    Args:
        height: Rows, >= 1.
        width: Columns, >= 1.
        rng: Source of the five numbers that a box takes.
        num_boxes: Number of boxes, >= 1.
        area_range: Bounds of ``a``, inside (0, 1].

    Returns:
        Mask, bool, shape (height, width).
    """
    mask = np.zeros((height, width), dtype=bool)
    shrink = math.sqrt(1 / num_boxes)
    for _ in range(num_boxes):
        area = rng.uniform(*area_range)
        height_share = math.exp(rng.uniform() * math.log(area))
        rows = round(height_share * shrink * height)
        columns = round(area / height_share * shrink * width)
        top = round(rng.uniform() * (height - rows))
        left = round(rng.uniform() * (width - columns))
        mask[top : top + rows, left : left + columns] ^= True
    return torch.from_numpy(mask)


def cutmix_masks(
    indices: Sequence[int],
    height: int,
    width: int,
    seed: int,
    step: int,
    num_boxes: int = 3,
    area_range: tuple[float, float] = (0.25, 0.5),
) -> Tensor:
    """Masks of several samples, each a function of (seed, step, index) alone.

    Args:
        indices: Place of each sample in the global batch, >= 0; the same sample gets the same mask on any rank.
        height: Rows.
        width: Columns.
        seed: Seed of the run, >= 0.
        step: Number of the draw, >= 0.
        num_boxes: Boxes per mask.
        area_range: Bounds of the area share of a box.

    Returns:
        Bool, shape (len(indices), 1, height, width).
    """
    masks = [
        # Philox under a SeedSequence is defined by its algorithm: the same numbers on every machine.
        cutmix_mask(
            height, width, np.random.Generator(np.random.Philox(np.random.SeedSequence((seed, step, index)))),
            num_boxes, area_range,
        )
        for index in indices
    ]  # fmt: skip
    return torch.stack(masks).unsqueeze(1)


def mix(first: Tensor, second: Tensor, mask: Tensor) -> Tensor:
    """``second`` where ``mask`` is set, ``first`` elsewhere.

    Args:
        first: Images, logits or labels, shape (N, *, H, W), any dtype.
        second: As ``first``.
        mask: Bool or 0/1, broadcastable to ``first``.

    Returns:
        As ``first``.
    """
    # A selection, not a weighted sum: 0 * inf would be NaN, and integers stay integers.
    return torch.where(mask.bool(), second, first)
