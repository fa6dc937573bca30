"""Segmentation of one image without labels: losses of Kim et al. (2020), and the score of segments without classes."""

import torch
import torch.nn.functional as F
from torch import Tensor

IGNORED = -1


def segment_labels(response: Tensor) -> Tensor:
    """The cluster of each pixel: the channel with the largest response.

    Args:
        response: Float, (N, Q, H, W).

    Returns:
        Integer in [0, Q), (N, H, W).
    """
    return response.detach().argmax(dim=1)


def count_labels(labels: Tensor, num_labels: int) -> Tensor:
    """How many different labels occur, of ``num_labels`` possible ones.

    Args:
        labels: Integer in [0, num_labels), any shape.
        num_labels: Q, >= 1.

    Returns:
        Integer scalar, in [1, num_labels] unless there is no pixel.
    """
    return (torch.bincount(labels.flatten(), minlength=num_labels) > 0).sum()


def similarity_loss(response: Tensor, labels: Tensor, selected: Tensor | None = None) -> Tensor:
    """Cross entropy of the response to the labels that it gives itself (Kim et al. 2020, feature similarity).

    Args:
        response: Float, (N, Q, H, W).
        labels: Integer in [0, Q), (N, H, W).
        selected: Pixels that count, bool, (N, H, W). Default: all.

    Returns:
        Mean over the pixels that count; without any, 0 that is attached to the graph.
    """
    # Flat, since the cross entropy of maps has no deterministic kernel on a GPU.
    flat, target = response.movedim(1, -1).flatten(0, -2), labels.flatten()
    if selected is None:
        return F.cross_entropy(flat, target)
    weight = selected.flatten().to(flat.dtype)
    return (F.cross_entropy(flat, target, reduction='none') * weight).sum() / weight.sum().clamp(min=1)


def continuity_loss(response: Tensor) -> Tensor:
    """Mean absolute difference of vertical neighbors plus that of horizontal ones (Kim et al. 2020, continuity).

    Args:
        response: Float, (N, Q, H, W).

    Returns:
        Scalar >= 0; a direction of only one pixel adds 0, attached to the graph.
    """
    return sum((_mean_or_zero(response.diff(dim=dim).abs()) for dim in (-2, -1)), response.sum() * 0)


def _mean_or_zero(values: Tensor) -> Tensor:
    return values.mean() if values.numel() else values.sum()


def best_ious(prediction: Tensor, truth: Tensor) -> Tensor:
    """For each true segment, the best intersection over union that any predicted segment has with it.

    Labels are names only: no predicted one belongs to a true one.

    Args:
        prediction: Label of each pixel, integer, (H, W).
        truth: Segment of each pixel, integer, (H, W); -1 where nobody knows, which counts for nothing.

    Returns:
        Float64 in (0, 1], one for each true segment in order of their numbers; empty if nothing is known.
    """
    known = truth != IGNORED
    segments, truth = truth[known].unique(return_inverse=True)
    labels, prediction = prediction[known].unique(return_inverse=True)
    shape = len(segments), len(labels)
    both = torch.bincount(truth * shape[1] + prediction, minlength=shape[0] * shape[1]).view(shape).double()
    union = both.sum(dim=1, keepdim=True) + both.sum(dim=0, keepdim=True) - both
    return (both / union).amax(dim=1) if len(segments) else both.new_zeros(0)
