"""CoveringRate: the share, the accuracy that it stands for, and what it refuses."""

import random

import pytest
import torch
from mmengine.structures import BaseDataElement

from mmssl.evaluation.metrics import CoveringRate
from mmssl.functional.partial_label import accuracy_from_covering_rate, covering_rate


def draw(count: int, num_classes: int, q: float, accuracy: float) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Predictions that are right with a probability, uniform candidate sets, and the accuracy there is."""
    numbers = random.Random(0)
    predictions, sets, right = [], [], 0
    for _ in range(count):
        truth = numbers.randrange(num_classes)
        sets.append([label == truth or numbers.random() < q for label in range(num_classes)])
        hit = numbers.random() < accuracy
        predictions.append(truth if hit else (truth + 1 + numbers.randrange(num_classes - 1)) % num_classes)
        right += hit
    return torch.tensor(predictions), torch.tensor(sets), right / count


@pytest.mark.parametrize(('q', 'accuracy'), [(0.0, 0.4), (0.3, 0.1), (0.3, 0.9), (0.7, 0.6), (0.7, 1.0)])
def test_the_estimate_is_the_accuracy_for_uniform_sets(q: float, accuracy: float) -> None:
    predictions, sets, right = draw(20000, 10, q, accuracy)
    rate = covering_rate(predictions, sets)
    assert rate == sum(row[label] for row, label in zip(sets.tolist(), predictions.tolist(), strict=True)) / 20000
    assert accuracy_from_covering_rate(rate, sets).item() == pytest.approx(right, abs=0.02)


def test_it_says_nothing_where_all_labels_are_candidates() -> None:
    sets = torch.ones(4, 3, dtype=torch.bool)
    rate = covering_rate(torch.zeros(4, dtype=torch.long), sets)
    assert rate == 1 and accuracy_from_covering_rate(rate, sets).isnan()


def samples(truth: bool) -> list[dict]:
    rows = [([0.1, 0.9, 0.0], [True, True, False], 0), ([0.5, 0.3, 0.2], [True, False, False], 0),
            ([0.2, 0.2, 0.6], [False, True, False], 1), ([0.3, 0.0, 0.7], [False, True, True], 2)]
    found = []
    for scores, candidates, label in rows:
        sample = BaseDataElement(metainfo=dict(true_label=label) if truth else {}, pred_score=torch.tensor(scores))
        sample.candidates = torch.tensor(candidates)
        found.append(sample.to_dict())
    return found


def test_metric() -> None:
    metric = CoveringRate()
    metric.process(None, samples(True)[:3])
    metric.process(None, samples(True)[3:])
    found = metric.evaluate(4)
    # Half of the false labels of two sets: q = (1 + 0 + 0 + 1) / 4 / 2.
    assert found == {'candidates/covering_rate': 75.0, 'candidates/true_accuracy': 50.0,
                     'candidates/accuracy_estimate': pytest.approx(100 * (0.75 - 0.25) / 0.75)}
    metric.process(None, samples(True)[:1] + samples(False)[1:])
    assert set(metric.evaluate(4)) == {'candidates/covering_rate', 'candidates/accuracy_estimate'}


@pytest.mark.parametrize(('change', 'error', 'message'), [
    (dict(pred_score=None), KeyError, 'needs `pred_score`'),
    (dict(candidates=None), KeyError, 'needs `candidates`, those of mmssl.PartialLabelDataset'),
    (dict(candidates=torch.tensor([True, False])), ValueError, 'a mask of 3 classes'),
    (dict(candidates=torch.zeros(3, dtype=torch.bool)), ValueError, 'with 0 labels'),
])
def test_what_does_not_fit_is_refused(change: dict, error: type[Exception], message: str) -> None:
    sample = {key: value for key, value in {**samples(True)[0], **change}.items() if value is not None}
    with pytest.raises(error, match=message):
        CoveringRate().process(None, [sample])
