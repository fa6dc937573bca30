"""Verification of pairs (same identity or not) by the distance of their features: the protocol of LFW.

Huang et al., Labeled Faces in the Wild, 2007: pairs are in ten folds; the threshold that is best on nine of them is
applied to the tenth, and the ten accuracies are averaged.
"""

import torch
from torch import Tensor
from torch.nn.functional import normalize

MAX_DISTANCE = 4.0


def squared_distance(first: Tensor, second: Tensor) -> Tensor:
    """Squared distance of features of unit length, which is 2 - 2 cos, without its cancellation.

    Args:
        first: Features of one image of each pair, (P, D), of any length.
        second: Those of the other, (P, D).

    Returns:
        float64, (P,), in [0, 4].
    """
    return (normalize(first.double()) - normalize(second.double())).square().sum(dim=1).clamp(max=MAX_DISTANCE)


def distance_thresholds(step: float = 0.01) -> Tensor:
    """Thresholds 0, step, 2 step, ... below 4, float64."""
    return torch.arange(round(MAX_DISTANCE / step), dtype=torch.float64) * step


def fold_of_pair(num_pairs: int, num_folds: int = 10) -> Tensor:
    """Fold of each pair: consecutive pairs share a fold, the first ``num_pairs % num_folds`` folds have one more.

    Args:
        num_pairs: P, at least ``num_folds``.
        num_folds: >= 2. Default: 10.

    Returns:
        int64, (P,), in [0, num_folds), increasing.
    """
    sizes = torch.full((num_folds,), num_pairs // num_folds)
    sizes[:num_pairs % num_folds] += 1
    return torch.repeat_interleave(torch.arange(num_folds), sizes)


def verify_pairs(distance: Tensor, same: Tensor, fold: Tensor, thresholds: Tensor) -> tuple[Tensor, Tensor]:
    """Accuracy on each fold at the threshold that is best on all the others.

    A pair counts as the same identity if its distance is below the threshold; of equally good thresholds, the smallest
    is taken.

    Args:
        distance: (P,).
        same: Whether the pair is one identity, bool, (P,).
        fold: Fold of each pair, int64, (P,), in [0, F), none empty, F >= 2.
        thresholds: Increasing, (K,).

    Returns:
        Accuracies, float64, (F,), in [0, 1], and thresholds, (F,).
    """
    right = (distance < thresholds[:, None]) == same  # (K, P)
    num_folds = int(fold.max()) + 1
    hits = torch.zeros(len(thresholds), num_folds, dtype=torch.float64).index_add(1, fold, right.double())
    sizes = torch.bincount(fold, minlength=num_folds)
    # Whole numbers, so that equal is equal.
    best = (hits.sum(dim=1, keepdim=True) - hits).argmax(dim=0)
    return hits[best, torch.arange(num_folds)] / sizes, thresholds[best]
