"""Label noise and long tails: counts, a second plain implementation, properties."""

import doctest
import hashlib
from fractions import Fraction

import numpy as np
import pytest

from mmssl.functional import label_noise
from mmssl.functional.label_noise import asymmetric_noise, long_tail_counts, symmetric_noise, transition_counts


def plain_symmetric(labels, num_classes, numerator, denominator, seed):
    """The rule once more, on hexadecimal texts, which sort as their numbers do."""
    def digest(purpose, index):
        return hashlib.sha256(f'{purpose}\n{seed}\n{index}'.encode()).hexdigest()

    noisy = np.array(labels)
    for label in range(num_classes):
        members = np.flatnonzero(np.array(labels) == label).tolist()
        members.sort(key=lambda index: digest('symmetric', index))
        for index in members[:len(members) * numerator // denominator]:
            others = [other for other in range(num_classes) if other != label]
            noisy[index] = others[int(digest('class', index), 16) % len(others)]
    return noisy.tolist()


@pytest.mark.parametrize('numerator', [0, 1, 2, 3, 4, 5])
def test_symmetric_noise_equals_the_plain_implementation(numerator):
    labels = np.random.default_rng(0).integers(0, 7, 200).tolist()
    assert symmetric_noise(labels, 7, Fraction(numerator, 5), 3) == plain_symmetric(labels, 7, numerator, 5, 3)


@pytest.mark.parametrize('rate', ['0.2', '0.4', '0.6', '0.8'])
def test_symmetric_counts_are_those_of_wang(rate):
    # CIFAR-10 in small: n NR / c samples of each class, and never its own class.
    labels, rate = [i % 10 for i in range(1000)], Fraction(rate)
    counts = transition_counts(labels, symmetric_noise(labels, 10, rate, 123), 10)
    assert (counts.sum(1) == 100).all() and (100 - counts.diagonal() == 100 * rate).all()
    wrong = counts[~np.eye(10, dtype=bool)]
    assert 0.5 < wrong.var() / wrong.mean() < 1.5  # as evenly as chance has it


def test_floor_of_the_exact_rate():
    labels = [0] * 100 + [1] * 3
    counts = transition_counts(labels, symmetric_noise(labels, 2, Fraction('0.29'), 0), 2)
    assert counts.tolist() == [[71, 29], [0, 3]]  # 0.29 * 100 is 28.99... in binary


def test_seed_and_nothing_else_decides():
    labels = [i % 4 for i in range(400)]
    first = symmetric_noise(labels, 4, Fraction(1, 2), 0)
    assert symmetric_noise(np.array(labels), 4, Fraction(1, 2), 0) == first
    assert symmetric_noise(labels, 4, Fraction(1, 2), 1) != first


def test_more_noise_keeps_the_labels_of_less():
    labels = [i % 4 for i in range(400)]
    less, more = (symmetric_noise(labels, 4, Fraction(rate), 0) for rate in ('0.2', '0.6'))
    assert all(m == n for n, m, true in zip(less, more, labels, strict=True) if n != true)


def test_asymmetric_noise_goes_where_the_confusions_say():
    labels = [i % 5 for i in range(500)]
    counts = transition_counts(labels, asymmetric_noise(labels, {0: 1, 3: 4, 4: 3}, Fraction('0.4'), 123), 5)
    expected = 100 * np.eye(5, dtype=int)
    for source, target in ((0, 1), (3, 4), (4, 3)):
        expected[source, source], expected[source, target] = 60, 40
    assert counts.tolist() == expected.tolist()


@pytest.mark.parametrize('ratio, sizes', [
    (10, [5000, 3871, 2997, 2320, 1796, 1391, 1077, 834, 645, 500]),
    (100, [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]),
    (1, [5000] * 10),
])  # fmt: skip
def test_long_tail_has_the_published_sizes(ratio, sizes):
    assert long_tail_counts(5000, 10, Fraction(ratio)) == sizes


def test_examples():
    result = doctest.testmod(label_noise)
    assert result.attempted and not result.failed
