"""Calibration: how far the confidence of a classifier is from its accuracy, over bins of confidence.

Guo et al., On Calibration of Modern Neural Networks, ICML 2017. All that is known of a bin are three sums (number of
samples, summed confidence, number of hits), so that any number of samples, such as the pixels of a data set, takes the
memory of the bins alone, and the sums of several processes add up to those of one.
"""

import torch
from torch import Tensor

# Of :func:`fine_bins`. Confidences of networks crowd near 1, so the bins are equally wide in the log-odds; float32 has
# nothing between 1 and a log-odds of 17.
NUM_FINE_BINS = 1024
LOG_ODDS = (-8.5, 17.0)


def confidence_and_prediction(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Largest softmax probability and its class, in float32 at least.

    Args:
        logits: Shape (N, C, *).

    Returns:
        Confidence, float, (N, *), in [1/C, 1], and class, int64, (N, *). NaN where a logit is NaN or infinite.
    """
    logits = logits if logits.dtype == torch.float64 else logits.float()
    largest, prediction = logits.max(dim=1)
    return (largest - logits.logsumexp(dim=1)).exp(), prediction


def equal_width_bins(confidence: Tensor, num_bins: int = 15) -> Tensor:
    """Bin of each confidence, of bins ((b-1)/B, b/B]: open to the left, closed to the right; 0 is in the first one.

    Args:
        confidence: Float, any shape, in [0, 1].
        num_bins: B, >= 1. Default: 15, that of Guo et al.

    Returns:
        int64, same shape, in [0, B).
    """
    edges = torch.arange(1, num_bins, dtype=torch.float64, device=confidence.device) / num_bins
    # Edges in the dtype of the confidence, so that a float32 0.2 is on the edge 1/5, not above it.
    return torch.bucketize(confidence, edges.to(confidence.dtype))


def fine_bins(confidence: Tensor) -> Tensor:
    """Bin of each confidence, of ``NUM_FINE_BINS`` narrow ones, equally wide in log(p / (1 - p)).

    Args:
        confidence: Float, any shape, in [0, 1].

    Returns:
        int64, same shape, in [0, NUM_FINE_BINS).
    """
    low, high = LOG_ODDS
    odds = torch.logit(confidence.double()).clamp(low, high)
    return ((odds - low) * (NUM_FINE_BINS / (high - low))).long().clamp(max=NUM_FINE_BINS - 1)


def equal_mass_bins(counts: Tensor, num_bins: int = 15) -> Tensor:
    """Adaptive bins with (nearly) equally many samples each, out of groups of samples with increasing confidence.

    A group stays together: samples of the same confidence have no order that could part them. With one sample a group,
    bins differ by at most one sample.

    Args:
        counts: Samples of each group, integer, (G,), groups in the order of their confidence.
        num_bins: B, >= 1. Default: 15.

    Returns:
        Bin of each group, int64, (G,), in [0, B): the one that holds the middle of the group.
    """
    counts = counts.long()
    ends = counts.cumsum(0)
    total = ends[-1:].clamp(min=1)
    middle_twice = 2 * ends - counts  # integers, so that no rounding moves a group
    return torch.div(num_bins * middle_twice, 2 * total, rounding_mode='floor').clamp(max=num_bins - 1)


def bin_sums(confidence: Tensor, hit: Tensor, index: Tensor, num_bins: int) -> Tensor:
    """What is kept of the samples.

    Args:
        confidence: Float, any shape.
        hit: Whether the prediction is right, bool, same shape.
        index: Bin, integer, same shape, in [0, B).
        num_bins: B.

    Returns:
        float64, (3, B): number of samples, summed confidence, number of hits.
    """
    index = index.flatten()
    sums = [torch.bincount(index, minlength=num_bins).double()]
    for values in (confidence, hit):
        sums.append(torch.bincount(index, weights=values.flatten().double(), minlength=num_bins))
    return torch.stack(sums)


def merge_bins(sums: Tensor, index: Tensor, num_bins: int) -> Tensor:
    """Sums of wider bins: those of group g are added to bin ``index[g]``.

    Args:
        sums: (3, G).
        index: int64, (G,), in [0, B).
        num_bins: B.

    Returns:
        (3, B).
    """
    return sums.new_zeros(3, num_bins).index_add(1, index, sums)


def calibration_gaps(sums: Tensor) -> Tensor:
    """``|accuracy - confidence|`` of each bin, (B,), in [0, 1]; 0 where a bin is empty."""
    count, confidence, hits = sums
    return (hits - confidence).abs() / count.clamp(min=1)


def expected_calibration_error(sums: Tensor) -> Tensor:
    r"""ECE :math:`= \sum_b \frac{n_b}{n} |acc_b - conf_b|`, scalar in [0, 1]; NaN without a sample."""
    return (sums[0] * calibration_gaps(sums)).sum() / sums[0].sum()


def maximum_calibration_error(sums: Tensor) -> Tensor:
    r"""MCE :math:`= \max_b |acc_b - conf_b|` over the bins that are not empty, scalar in [0, 1]; NaN without one."""
    return torch.where(sums[0].sum() > 0, calibration_gaps(sums).max(), float('nan'))
