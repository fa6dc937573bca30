"""Candidate sets: the worked vector, frequencies, and what no set may lack."""

from fractions import Fraction

import numpy as np
import pytest

from mmssl.functional import candidates as cand

LABELS = [i % 5 for i in range(2000)]


def frequencies(sets, num_classes: int = 5) -> np.ndarray:
    """Share of the samples of class i that have candidate j, (C, C)."""
    mask = cand.candidate_mask(sets, num_classes)
    return np.stack([mask[np.array(LABELS) == label].mean(axis=0) for label in range(num_classes)])


def test_worked_vector_of_instance_dependent_flips() -> None:
    flips = cand.flip_probabilities(np.array([[0.45, 0.05, 0.3, 0.2]]), [0], 0.4)
    np.testing.assert_allclose(flips, [[0, 0.1454545455, 0.8727272727, 0.5818181818]], atol=1e-9)
    certain = cand.flip_probabilities(np.array([[1.0, 0, 0, 0], [0.0, 0, 0, 1]]), [0, 0], 0.4)
    np.testing.assert_allclose(certain, [[0, 0, 0, 0], [0, 0, 0, 1]])


@pytest.mark.parametrize('rate', ['0.1', '0.3', '0.7'])
def test_uniform(rate: str) -> None:
    sets = cand.uniform_candidates(LABELS, 5, Fraction(rate), seed=0)
    shares = frequencies(sets)
    assert (shares.diagonal() == 1).all()
    assert np.abs(shares[~np.eye(5, dtype=bool)] - float(rate)).max() < 0.09
    assert any(len(labels) == 1 for labels in sets)
    assert sets == cand.uniform_candidates(LABELS, 5, Fraction(rate), seed=0)
    assert sets != cand.uniform_candidates(LABELS, 5, Fraction(rate), seed=1)
    assert all(labels == sorted(set(labels)) for labels in sets)


def test_extreme_rates() -> None:
    assert cand.uniform_candidates(LABELS, 5, Fraction(0), 0) == [[label] for label in LABELS]
    assert cand.uniform_candidates(LABELS, 5, Fraction(1), 0) == [list(range(5))] * 2000
    assert cand.uniform_candidates(LABELS, 5, Fraction(0), 0, at_least_one=True) == [[label] for label in LABELS]


def test_at_least_one_false_candidate() -> None:
    plain = cand.uniform_candidates(LABELS, 5, Fraction('0.1'), 3)
    redrawn = cand.uniform_candidates(LABELS, 5, Fraction('0.1'), 3, at_least_one=True)
    assert all(len(labels) > 1 for labels in redrawn)
    assert all(new == old for new, old in zip(redrawn, plain, strict=True) if len(old) > 1)
    # Redrawing conditions on there being one: each false label has probability q / (1 - (1 - q)^4).
    assert abs(frequencies(redrawn)[0, 1:].mean() - 0.1 / (1 - 0.9**4)) < 0.04


def test_flip_matrix() -> None:
    matrix = np.zeros((5, 5))
    matrix[0, 1], matrix[2, 4] = 0.5, 1.0
    shares = frequencies(cand.flip_candidates(LABELS, matrix, 0))
    assert abs(shares[0, 1] - 0.5) < 0.08 and shares[2, 4] == 1
    shares[0, 1] = shares[2, 4] = 0
    assert (shares == np.eye(5)).all()


def test_hierarchical() -> None:
    shares = frequencies(cand.hierarchical_candidates(LABELS, ['a', 'b', 'a', 'b', 'b'], Fraction('0.5'), 0))
    same = np.array([[i == j or {i, j} <= {0, 2} or {i, j} <= {1, 3, 4} for j in range(5)] for i in range(5)])
    assert (shares[~same] == 0).all() and (shares[same] > 0.4).all()


def test_instance_dependent() -> None:
    probs = np.random.default_rng(0).dirichlet(np.ones(5), size=2000)
    sets = cand.instance_candidates(probs, LABELS, 0.4, seed=0)
    expected = cand.flip_probabilities(probs, LABELS, 0.4).sum(axis=1).mean()
    assert abs(np.mean([len(labels) for labels in sets]) - 1 - expected) < 0.1
    assert all(label in labels for label, labels in zip(LABELS, sets, strict=True))


def test_ambiguity_degree() -> None:
    mask = cand.candidate_mask([[0, 1], [0], [0, 1], [1]], 2)
    assert cand.ambiguity_degree(mask, [0, 0, 0, 1]) == pytest.approx(2 / 3)
    assert cand.ambiguity_degree(np.eye(3, dtype=bool), [0, 1, 2]) == 0
