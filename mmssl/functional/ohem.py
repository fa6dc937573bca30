"""Online hard example mining: cross entropy over the pixels that the student is least sure of."""

import torch
import torch.nn.functional as F
from torch import Tensor


def ohem_mask(logits: Tensor, label: Tensor, thresh: float, min_kept: int, ignore_index: int = 255) -> Tensor:
    """Pixels whose true class has a probability of at most max(``thresh``, the ``min_kept``-th smallest of the batch).

    With fewer labeled pixels than ``min_kept``, all of them.

    Args:
        logits: (N, C, *).
        label: int64, (N, *).
        thresh: In [0, 1].
        min_kept: At least 1.
        ignore_index: The label of pixels that never count.

    Returns:
        Bool, (N, *).
    """
    valid = label != ignore_index
    count = int(valid.sum())
    if count < min_kept:
        return valid
    with torch.no_grad():
        prob = logits.float().softmax(dim=1).gather(1, label.where(valid, 0)[:, None])[:, 0]
        # Sorted, since kthvalue has no deterministic form on a GPU.
        kept = prob[valid].sort().values[min_kept - 1].clamp(min=thresh)
    return valid & (prob <= kept)


def ohem_cross_entropy(logits: Tensor,
                       label: Tensor,
                       thresh: float = 0.7,
                       min_kept: int = 100000,
                       ignore_index: int = 255) -> Tensor:
    """Mean cross entropy over the pixels of :func:`ohem_mask`.

    Args:
        logits: (N, C, *).
        label: int64, (N, *).
        thresh: Pixels up to this probability of their true class are kept, in [0, 1].
        min_kept: At least so many pixels of the batch are kept, the hardest ones.
        ignore_index: The label of pixels that never count.

    Returns:
        A scalar, attached to the graph; 0 where no pixel has a label.
    """
    mask = ohem_mask(logits, label, thresh, min_kept, ignore_index)
    loss = F.cross_entropy(logits.float(), label.where(mask, ignore_index), ignore_index=ignore_index, reduction='sum')
    return loss / mask.sum().clamp(min=1)
