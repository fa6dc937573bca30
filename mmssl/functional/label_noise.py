"""Label noise and long tails, as functions of the labels and a seed: the same on every machine.

What is random comes from SHA-256 of the seed and the sample's index, never from a random number generator, so it
depends on no version of Python or NumPy.
"""

import hashlib
from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

# Wang et al., Symmetric Cross Entropy (ICCV 2019): which of CIFAR-10's classes are taken for which.
CIFAR10_CONFUSIONS = {
    'truck': 'automobile', 'bird': 'airplane', 'cat': 'dog', 'dog': 'cat', 'deer': 'horse'
}  # fmt: skip


def _number(*parts: object) -> int:
    """A number of 256 bits that depends on ``parts`` alone."""
    return int(hashlib.sha256('\n'.join(map(str, parts)).encode()).hexdigest(), 16)


def seeded_members(labels: Sequence[int], seed: int, purpose: str) -> dict[int, list[int]]:
    """Indices of the samples of each class that occurs, each list in the order of SHA-256 of (purpose, seed, index)."""
    members: dict[int, list[int]] = {}
    for index, label in enumerate(labels):
        members.setdefault(int(label), []).append(index)
    return {label: sorted(members[label], key=lambda i: _number(purpose, seed, i)) for label in sorted(members)}


def symmetric_noise(labels: Sequence[int], num_classes: int, rate: Fraction, seed: int) -> list[int]:
    """Noise of Wang et al. 2019: of each class a share of the samples, without replacement, gets another class.

    They change ``floor(n rate / c)`` samples of each class, for classes of equal size; here it is ``floor(n_k rate)``
    of class k, which is the same number there and possible for every size. The new class is drawn evenly from the
    *other* ones, so the share of wrong labels is ``rate`` itself, not ``rate (c - 1) / c``.

    Args:
        labels: True class of each sample, in [0, c).
        num_classes: c, >= 2.
        rate: Share of wrong labels, in [0, 1], exact: the floor of a float such as ``0.29 * 100`` is one too small.
        seed: Any integer.

    Returns:
        A label for each sample.
    """
    noisy = [int(label) for label in labels]
    for label, indices in seeded_members(labels, seed, 'symmetric').items():
        for index in indices[:int(len(indices) * rate)]:
            other = _number('class', seed, index) % (num_classes - 1)
            noisy[index] = other + (other >= label)
    return noisy


def asymmetric_noise(labels: Sequence[int], confusions: Mapping[int, int], rate: Fraction, seed: int) -> list[int]:
    """Of each class that is taken for another, ``floor(n_k rate)`` samples get that other class.

    Args:
        labels: True class of each sample.
        confusions: The class that each of the confused classes is taken for; classes that are no key stay right.
        rate: Share of wrong labels in each of the confused classes, in [0, 1], exact.
        seed: Any integer.

    Returns:
        A label for each sample. Every class is confused by its true label: cat and dog can change places.
    """
    noisy = [int(label) for label in labels]
    for label, indices in seeded_members(labels, seed, 'asymmetric').items():
        if label in confusions:
            for index in indices[:int(len(indices) * rate)]:
                noisy[index] = int(confusions[label])
    return noisy


def transition_counts(true: Sequence[int], noisy: Sequence[int], num_classes: int) -> np.ndarray:
    """How many samples of each true class (row) have each label (column), int64, (C, C)."""
    pairs = np.asarray(true, np.int64) * num_classes + np.asarray(noisy, np.int64)
    return np.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)


def long_tail_counts(largest: int, num_classes: int, ratio: Fraction) -> list[int]:
    """Sizes of the classes of a long tail (Cui et al., CVPR 2019): ``floor(n ratio^(-k / (c - 1)))`` of class k.

    Args:
        largest: n, the size of class 0, >= 1.
        num_classes: c, >= 2.
        ratio: Imbalance ratio, size of the first class over that of the last, >= 1.

    Returns:
        Sizes, not increasing.

    Examples:
        >>> long_tail_counts(5000, 10, Fraction(100))
        [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]
    """
    with localcontext() as context:
        context.prec = 50  # decimal arithmetic is the same on every machine
        base = Decimal(ratio.denominator) / Decimal(ratio.numerator)
        # So much is added that 50 is not 49.999..., and too little to change any other size.
        return [int(largest * base**(Decimal(k) / Decimal(num_classes - 1)) + Decimal('1e-30'))
                for k in range(num_classes)]
