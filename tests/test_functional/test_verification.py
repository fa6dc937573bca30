"""Verification of pairs, against a plain implementation and by hand."""

import numpy as np
import pytest
import torch

from mmssl.functional.verification import distance_thresholds, fold_of_pair, squared_distance, verify_pairs


def plain_folds(num_pairs, num_folds):
    return [part.tolist() for part in np.array_split(np.arange(num_pairs), num_folds)]


def plain_verification(first, second, same, num_folds=10):
    """Fold by fold and threshold by threshold."""
    unit = [[v / np.linalg.norm(v, axis=1, keepdims=True)] for v in (first, second)]
    distance = ((unit[0][0] - unit[1][0])**2).sum(1)
    accuracies, chosen = [], []
    for test in plain_folds(len(same), num_folds):
        train = [i for i in range(len(same)) if i not in test]
        best, best_accuracy = None, -1
        for k in range(400):
            accuracy = sum((distance[i] < k * 0.01) == same[i] for i in train)
            if accuracy > best_accuracy:
                best, best_accuracy = k * 0.01, accuracy
        accuracies.append(np.mean([(distance[i] < best) == same[i] for i in test]))
        chosen.append(best)
    return accuracies, chosen


@pytest.mark.parametrize('pairs, folds', [(20, 10), (23, 10), (40, 4)])
def test_equals_the_plain_implementation(pairs, folds):
    rng = np.random.default_rng(pairs)
    same = rng.random(pairs) < 0.5
    first = rng.normal(size=(pairs, 8))
    second = np.where(same[:, None], first + rng.normal(size=(pairs, 8)), rng.normal(size=(pairs, 8)))
    tensors = [torch.from_numpy(array) for array in (first, second, same)]
    found = verify_pairs(squared_distance(*tensors[:2]), tensors[2], fold_of_pair(pairs, folds), distance_thresholds())
    accuracies, chosen = plain_verification(first, second, same, folds)
    np.testing.assert_allclose(found[0], accuracies)
    np.testing.assert_allclose(found[1], chosen)


@pytest.mark.parametrize('pairs, folds', [(6000, 10), (23, 10), (10, 10), (7, 2)])
def test_folds_are_consecutive(pairs, folds):
    fold = fold_of_pair(pairs, folds)
    assert [torch.nonzero(fold == f).flatten().tolist() for f in range(folds)] == plain_folds(pairs, folds)


def test_by_hand():
    # Two folds; each has a threshold of its own that is perfect, and is judged by that of the other.
    distance = torch.tensor([0.1, 0.5, 1.1, 1.5], dtype=torch.float64)
    same = torch.tensor([True, False, True, False])
    accuracy, threshold = verify_pairs(distance, same, torch.tensor([0, 0, 1, 1]), distance_thresholds(0.2))
    # Fold 0 takes the first threshold above 1.1, which lets both of its pairs pass; fold 1 the first above 0.1, which
    # lets none pass.
    torch.testing.assert_close(threshold, torch.tensor([1.2, 0.2], dtype=torch.float64))
    assert accuracy.tolist() == [0.5, 0.5]


def test_distance_of_unit_features():
    first = torch.tensor([[3.0, 0], [0, 2], [1, 0], [1, 1]])
    second = torch.tensor([[5.0, 0], [7, 0], [-2, 0], [1, 0]])
    expected = torch.tensor([0, 2, 4, 2 - 2**0.5], dtype=torch.float64)
    torch.testing.assert_close(squared_distance(first, second), expected)
    assert squared_distance(first, first).max() == 0


def test_thresholds():
    thresholds = distance_thresholds()
    assert len(thresholds) == 400 and thresholds[0] == 0 and thresholds[-1] == pytest.approx(3.99)
