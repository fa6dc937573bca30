r"""Online label smoothing (OLS): soft targets made of what the model itself predicts for each class.

Delving Deep into Label Smoothing (Zhang et al., TIP 2021). ``S`` is a matrix (C, C); row y is the soft target of class
y. In each epoch, with S from the epoch before,

.. math:: L = \alpha \, \mathrm{CE}(y) + (1 - \alpha) \, \mathrm{CE}(S_y)

and the softmax of each correctly classified sample is added up in the row of its class: :func:`class_sums`. At the end
of the epoch the means are the new S: :func:`next_targets`.
"""

import torch
from torch import Tensor

from .adr import stable_log_probs


def first_targets(num_classes: int, first_epoch: str) -> Tensor:
    """S of the first epoch.

    Args:
        num_classes: C.
        first_epoch: ``'uniform'``: 1/C everywhere; ``'none'``: 0, which switches the soft term off.
    """
    return torch.full((num_classes, num_classes), 1 / num_classes if first_epoch == 'uniform' else 0.)


def smoothed_cross_entropy(logits: Tensor, label: Tensor, targets: Tensor, alpha: float) -> Tensor:
    r""":math:`\alpha \, \mathrm{CE}(y) + (1 - \alpha) \, \mathrm{CE}(S_y)` of each pixel.

    Args:
        logits: Float32 or float64, (N, C, *).
        label: y, int64, (N, *).
        targets: S, (C, C).
        alpha: In [0, 1].

    Returns:
        (N, *), >= 0.
    """
    log_probs = stable_log_probs(logits)
    hard = log_probs.gather(1, label.unsqueeze(1)).squeeze(1)
    soft = (targets.to(log_probs.dtype)[label].movedim(-1, 1) * log_probs).sum(dim=1)
    return -(alpha * hard + (1 - alpha) * soft)


def class_sums(logits: Tensor, label: Tensor, valid: Tensor | None = None) -> Tensor:
    """Summed softmax and number of the correctly classified pixels of each class.

    Args:
        logits: Float32 or float64, (N, C, *).
        label: int64, (N, *).
        valid: Pixels that count, bool, (N, *); None for all.

    Returns:
        Float64, (C, C + 1): row y has the sums of class y, and their number at the end.
    """
    num_classes = logits.shape[1]
    correct = logits.argmax(dim=1) == label
    if valid is not None:
        correct = correct & valid
    probs = stable_log_probs(logits).exp().movedim(1, -1).reshape(-1, num_classes)
    rows = torch.cat([probs, torch.ones_like(probs[:, :1])], dim=1).double()
    # Not an index of the correct ones: their number would have to be known, and a GPU waited for.
    rows = rows.masked_fill(~correct.reshape(-1, 1), 0)
    return rows.new_zeros(num_classes, num_classes + 1).index_add_(0, label.reshape(-1), rows)


def next_targets(sums: Tensor, targets: Tensor, freeze_at: float | None = None) -> Tensor:
    """S of the next epoch: mean softmax of the correctly classified samples, uniform for classes without any.

    Args:
        sums: Those of an epoch, (C, C + 1), see :func:`class_sums`.
        targets: S of this epoch, (C, C).
        freeze_at: Rows whose maximum has reached this stay as they are (0.88 in the fine-grained code); None: none do.
    """
    num_classes = len(sums)
    count = sums[:, -1:]
    mean = torch.where(count > 0, sums[:, :-1] / count.clamp(min=1), 1 / num_classes).to(targets.dtype)
    if freeze_at is None:
        return mean
    return torch.where(targets.amax(dim=1, keepdim=True) >= freeze_at, targets, mean)
