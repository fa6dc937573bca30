r"""Candidate sets of partial labels, as functions of the labels and a seed: the same on every machine.

Whether a label is in a set is decided by SHA-256 of the seed, the sample's index and the label, never by a random
number generator, so it depends on no version of Python or NumPy.
"""

import hashlib
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

SCALE = 1 << 64


def uniform_number(*parts: object) -> int:
    """An integer in [0, 2^64) that depends on ``parts`` alone."""
    return int.from_bytes(hashlib.sha256('\n'.join(map(str, parts)).encode()).digest()[:8], 'big')


def draw_candidates(
    labels: Sequence[int],
    num_classes: int,
    probability: Callable[[int, int], Fraction | float],
    seed: int,
    at_least_one: bool = False,
) -> list[list[int]]:
    """Sets that hold the true label, and each other label with a probability of its own, independently.

    Args:
        labels: True class of each sample, in [0, num_classes).
        num_classes: C >= 2.
        probability: Called with (sample, label), returns the probability in [0, 1] that a false label enters.
        seed: Any integer.
        at_least_one: Whether a set is drawn again until it has a false label; samples none of whose labels can enter
            keep their true label alone.

    Returns:
        For each sample its candidates, increasing.
    """
    sets = []
    for sample, true in enumerate(labels):
        limits = {label: int(Fraction(probability(sample, label)) * SCALE) for label in range(num_classes)}
        limits.pop(int(true))
        attempts = range(10**6) if at_least_one and any(limits.values()) else range(1)
        for attempt in attempts:
            false = [label for label, limit in limits.items()
                     if uniform_number('candidate', seed, attempt, sample, label) < limit]
            if false:
                break
        sets.append(sorted([int(true), *false]))
    return sets


def uniform_candidates(
    labels: Sequence[int], num_classes: int, rate: Fraction, seed: int, at_least_one: bool = False
) -> list[list[int]]:
    """Every false label enters with the same probability (PiCO; with ``at_least_one`` VALEN's variant).

    Args:
        labels: True classes.
        num_classes: C >= 2.
        rate: q, in [0, 1], exact.
        seed: Any integer.
        at_least_one: See :func:`draw_candidates`.
    """
    return draw_candidates(labels, num_classes, lambda sample, label: rate, seed, at_least_one)


def flip_candidates(labels: Sequence[int], matrix: np.ndarray, seed: int) -> list[list[int]]:
    """False label j enters the set of a sample of class y with probability ``matrix[y, j]``.

    Args:
        labels: True classes.
        matrix: In [0, 1], shape (C, C); the diagonal has no effect.
        seed: Any integer.
    """
    return draw_candidates(labels, len(matrix), lambda sample, label: float(matrix[labels[sample], label]), seed)


def hierarchical_candidates(
    labels: Sequence[int], groups: Sequence[int], rate: Fraction, seed: int, at_least_one: bool = False
) -> list[list[int]]:
    """As :func:`uniform_candidates`, but only labels of the true label's own group enter (CIFAR-100-H of PiCO).

    Args:
        labels: True classes.
        groups: Group of each class, such as CIFAR-100's superclasses.
        rate: q, in [0, 1], exact.
        seed: Any integer.
        at_least_one: See :func:`draw_candidates`.
    """
    def probability(sample: int, label: int) -> Fraction:
        return rate if groups[label] == groups[labels[sample]] else Fraction(0)

    return draw_candidates(labels, len(groups), probability, seed, at_least_one)


def flip_probabilities(probs: np.ndarray, labels: Sequence[int], rate: float) -> np.ndarray:
    r"""Instance-dependent probabilities (Xu et al., NeurIPS 2021, VALEN) from what a weak annotator believes.

    .. math:: r_c = f_c \; (r_y = 0), \quad r \leftarrow r / \max_c r, \quad
              r \leftarrow \text{rate} \cdot r / \text{mean}_c(r), \quad r \leftarrow \min(r, 1)

    The mean is over all C classes, the zero of the true one included, so before the last step rate C false labels are
    expected.

    Args:
        probs: f, softmax of the annotator on the images as they are, shape (N, C).
        labels: y, shape (N,).
        rate: >= 0; 0.4 for sets of ten classes, 0.04 for CIFAR-100.

    Returns:
        Float64, shape (N, C), 0 for the true label.
    """
    flips = np.array(probs, np.float64)
    flips[np.arange(len(flips)), np.asarray(labels, np.int64)] = 0
    with np.errstate(invalid='ignore', divide='ignore'):
        flips /= flips.max(axis=1, keepdims=True)
        flips *= rate / flips.mean(axis=1, keepdims=True)
    return np.minimum(np.nan_to_num(flips, nan=0.0), 1)


def instance_candidates(probs: np.ndarray, labels: Sequence[int], rate: float, seed: int) -> list[list[int]]:
    """Sets drawn with :func:`flip_probabilities`.

    Args:
        probs: Shape (N, C).
        labels: True classes, shape (N,).
        rate: See there.
        seed: Any integer.
    """
    flips = flip_probabilities(probs, labels, rate)
    return draw_candidates(labels, flips.shape[1], lambda sample, label: float(flips[sample, label]), seed)


def held_out_samples(length: int, share: float, seed: int) -> list[int]:
    """A part of a data set, chosen without a look at it.

    Args:
        length: Samples of the whole.
        share: Of the samples that the part has, in [0, 1], rounded to whole samples.
        seed: Any integer.

    Returns:
        Indices, increasing.
    """
    order = sorted(range(length), key=lambda sample: uniform_number('held out', seed, sample))
    return sorted(order[:round(share * length)])


def ambiguity_degree(candidates: np.ndarray, labels: Sequence[int]) -> float:
    """Largest share of the samples of one class that have one and the same false candidate, in [0, 1].

    At 1, some false label is a candidate wherever its class is, and nothing tells the two apart.

    Args:
        candidates: Bool, shape (N, C).
        labels: True classes, shape (N,).
    """
    labels = np.asarray(labels, np.int64)
    largest = 0.0
    for label in np.unique(labels):
        shares = candidates[labels == label].mean(axis=0)
        shares[label] = 0
        largest = max(largest, float(shares.max()))
    return largest


def candidate_mask(sets: Sequence[Sequence[int]], num_classes: int) -> np.ndarray:
    """The sets as a mask, bool, shape (N, C).

    Args:
        sets: Labels of each set.
        num_classes: C.
    """
    mask = np.zeros((len(sets), num_classes), bool)
    for row, labels in zip(mask, sets, strict=True):
        row[list(labels)] = True
    return mask
