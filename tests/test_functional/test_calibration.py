"""Calibration errors: the vectors of the method facts, a second plain implementation, edges of bins, properties."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from mmssl.functional.calibration import (
    NUM_FINE_BINS,
    bin_sums,
    confidence_and_prediction,
    equal_mass_bins,
    equal_width_bins,
    expected_calibration_error,
    fine_bins,
    maximum_calibration_error,
    merge_bins,
)

CONFIDENCE = [0.95, 0.91, 0.81, 0.65, 0.55, 0.51, 0.35, 0.31]
HIT = [1, 1, 0, 1, 0, 1, 0, 0]


def width_sums(confidence, hit, num_bins):
    return bin_sums(confidence, hit, equal_width_bins(confidence, num_bins), num_bins)


def plain_bins(confidence, hit, edges):
    """Samples of each bin (low, high], one by one."""
    bins = [[] for _ in edges[1:]]
    for c, h in zip(confidence, hit, strict=True):
        for b, (low, high) in enumerate(pairwise(edges)):
            if low < c <= high or (b == 0 and c == low):
                bins[b].append((c, h))
    return bins


def plain_errors(bins):
    gaps = [(len(b), abs(sum(h for _, h in b) / len(b) - sum(c for c, _ in b) / len(b))) for b in bins if b]
    total = sum(n for n, _ in gaps)
    return sum(n * g for n, g in gaps) / total, max(g for _, g in gaps)


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
@pytest.mark.parametrize('num_bins, ece', [(5, 0.2175), (15, 0.375)])
def test_vectors(num_bins, ece, dtype):
    sums = width_sums(torch.tensor(CONFIDENCE, dtype=dtype), torch.tensor(HIT, dtype=torch.bool), num_bins)
    assert expected_calibration_error(sums).item() == pytest.approx(ece, abs=1e-6)


@pytest.mark.parametrize('num_bins', [1, 2, 7, 10, 15, 100])
def test_width_bins_equal_the_plain_implementation(num_bins):
    rng = np.random.default_rng(num_bins)
    # Tenths lie on edges of some of the bins.
    confidence = np.concatenate([rng.random(300), np.arange(0, 11) / 10])
    hit = rng.random(len(confidence)) < confidence**2
    sums = width_sums(torch.from_numpy(confidence), torch.from_numpy(hit), num_bins)
    ece, mce = plain_errors(plain_bins(confidence, hit, [b / num_bins for b in range(num_bins + 1)]))
    assert expected_calibration_error(sums).item() == pytest.approx(ece, abs=1e-12)
    assert maximum_calibration_error(sums).item() == pytest.approx(mce, abs=1e-12)


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
def test_bins_are_open_to_the_left_and_closed_to_the_right(dtype):
    confidence = torch.tensor([0, 0.2, 0.4, 0.6, 0.8, 1.0], dtype=dtype)
    assert equal_width_bins(confidence, 5).tolist() == [0, 0, 1, 2, 3, 4]
    above = torch.nextafter(confidence[1:5], torch.ones((), dtype=dtype))
    assert equal_width_bins(above, 5).tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize('count, num_bins', [(30, 15), (31, 15), (44, 15), (7, 15), (100, 1)])
def test_mass_bins_are_equally_full(count, num_bins):
    index = equal_mass_bins(torch.ones(count, dtype=torch.long), num_bins)
    sizes = torch.bincount(index, minlength=num_bins)
    assert (index.diff() >= 0).all() and sizes.sum() == count
    assert sizes.max() - sizes.min() <= 1
    # Another way to say it: sample i, whose middle is i + 1/2, is in bin floor(B (i + 1/2) / n).
    assert index.tolist() == [math.floor(num_bins * (2 * i + 1) / (2 * count)) for i in range(count)]


def test_mass_bins_do_not_part_equal_confidences():
    # Half of all samples are sure; no order among them may decide which bin they are in.
    counts = torch.tensor([1, 1, 1, 1, 4])
    assert equal_mass_bins(counts, 4).tolist() == [0, 0, 1, 1, 3]
    sums = torch.stack([counts.double(), torch.rand(5, dtype=torch.float64), torch.zeros(5, dtype=torch.float64)])
    merged = merge_bins(sums, equal_mass_bins(counts, 4), 4)
    assert merged[0].tolist() == [2, 2, 0, 4]
    torch.testing.assert_close(merged.sum(1), sums.sum(1))


def test_fine_bins_resolve_what_is_nearly_sure():
    confidence = torch.tensor([0.0, 1e-3, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999, 1.0])
    index = fine_bins(confidence)
    assert (index.diff() > 0).all() and index[0] == 0 and index[-1] == NUM_FINE_BINS - 1
    # A bin near 1 is narrow: adaptive bins of a confident model have groups to choose from.
    assert len(set(fine_bins(torch.linspace(0.999, 0.99999, 500)).tolist())) > 100


def test_adaptive_error_over_fine_bins_is_near_the_exact_one():
    generator = torch.Generator().manual_seed(0)
    confidence = torch.sigmoid(3 * torch.randn(20000, generator=generator) + 4).clamp(min=0.25)
    hit = torch.rand(20000, generator=generator) < confidence**3
    fine = bin_sums(confidence, hit, fine_bins(confidence), NUM_FINE_BINS)
    adaptive = expected_calibration_error(merge_bins(fine, equal_mass_bins(fine[0], 15), 15))
    order = confidence.argsort()
    exact = bin_sums(confidence[order], hit[order], equal_mass_bins(torch.ones(20000, dtype=torch.long), 15), 15)
    assert adaptive.item() == pytest.approx(expected_calibration_error(exact).item(), abs=2e-3)


def test_sums_add_up():
    confidence, hit = torch.rand(50), torch.rand(50) < 0.5
    whole = width_sums(confidence, hit, 15)
    parts = width_sums(confidence[:20], hit[:20], 15), width_sums(confidence[20:], hit[20:], 15)
    torch.testing.assert_close(parts[0] + parts[1], whole)


def test_all_in_one_bin_and_empty_bins():
    sums = width_sums(torch.full((10,), 0.99), torch.tensor([True] * 9 + [False]), 15)
    assert (sums[0] > 0).sum() == 1
    assert expected_calibration_error(sums).item() == pytest.approx(0.09, abs=1e-6)
    assert maximum_calibration_error(sums).item() == pytest.approx(0.09, abs=1e-6)


def test_nothing_is_not_zero():
    sums = width_sums(torch.zeros(0), torch.zeros(0, dtype=torch.bool), 15)
    assert expected_calibration_error(sums).isnan() and maximum_calibration_error(sums).isnan()


def test_calibrated_classifier_has_no_error():
    confidence = torch.tensor([0.5] * 10 + [0.9] * 10, dtype=torch.float64)
    hit = torch.tensor([True] * 5 + [False] * 5 + [True] * 9 + [False])
    assert expected_calibration_error(width_sums(confidence, hit, 15)).item() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_confidence_of_logits(dtype):
    logits = torch.randn(3, 5, 4, 2, dtype=torch.float64).mul(20).to(dtype)
    confidence, prediction = confidence_and_prediction(logits)
    expected = logits.double().softmax(1).max(1)
    assert torch.equal(prediction, logits.double().argmax(1))
    torch.testing.assert_close(confidence.double(), expected.values, rtol=1e-5, atol=1e-6)
    assert (confidence <= 1).all()


@pytest.mark.parametrize('value', [float('nan'), float('inf')])
def test_no_confidence_of_what_is_not_finite(value):
    logits = torch.zeros(1, 3)
    logits[0, 1] = value
    assert confidence_and_prediction(logits)[0].isnan().all()
    # A class that is ruled out is none of this.
    logits[0, 1] = -float('inf')
    assert confidence_and_prediction(logits)[0].item() == pytest.approx(0.5)
