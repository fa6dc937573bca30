"""Quality of pseudo labels: the counts, against a plain second implementation, and the metric."""

import math

import pytest
import torch
from mmengine.structures import BaseDataElement

from mmssl.evaluation.metrics import PseudoLabelQuality
from mmssl.functional.pseudo_label_quality import pseudo_label_counts, pseudo_label_scores


def plain(labels: list[int], selected: list[bool], truth: list[int], num_classes: int) -> dict[str, float]:
    def share(part: list[int], whole: list[int]) -> float:
        return len(part) / len(whole) if whole else math.nan

    everything = range(len(labels))
    known = [i for i in everything if 0 <= truth[i] < num_classes]
    chosen = [i for i in everything if selected[i]]
    return dict(
        coverage=share(chosen, list(everything)),
        accuracy=share([i for i in known if labels[i] == truth[i]], known),
        selected_accuracy=share(
            [i for i in known if selected[i] and labels[i] == truth[i]], [i for i in known if selected[i]]
        ),
    )


@pytest.mark.parametrize('threshold', [0.0, 0.5, 1.1])
def test_scores_equal_a_plain_implementation(threshold: float) -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 3, (40,), generator=generator)
    truth = torch.randint(-1, 4, (40,), generator=generator)  # -1 and 3 are no classes
    selected = torch.rand(40, generator=generator) >= threshold
    halves = [pseudo_label_counts(labels[part], selected[part], truth[part], 3) for part in (slice(0, 9), slice(9, 40))]
    scores, shares = pseudo_label_scores(sum(halves))
    expected = plain(labels.tolist(), selected.tolist(), truth.tolist(), 3)
    for key, value in expected.items():
        assert scores[key].item() == pytest.approx(value, nan_ok=True), key
    for c in range(3):
        mine = [i for i in range(40) if labels[i] == c and 0 <= truth[i] < 3]
        assert shares['share'][c].item() == pytest.approx((labels == c).sum().item() / 40)
        assert shares['class_accuracy'][c].item() == pytest.approx(sum(truth[i] == c for i in mine).item() / len(mine))


def test_unknown_truth_gives_no_accuracy() -> None:
    scores, _ = pseudo_label_scores(pseudo_label_counts(torch.tensor([0, 1]), torch.tensor([True, False]), None, 2))
    assert scores['coverage'] == 0.5 and scores['accuracy'].isnan() and scores['selected_accuracy'].isnan()


def test_metric() -> None:
    metric = PseudoLabelQuality(threshold=0.75, per_class=True)
    metric.dataset_meta = dict(classes=['cat', 'dog'])
    rows = [([0.9, 0.1], 0), ([0.6, 0.4], 0), ([0.2, 0.8], 0), ([0.25, 0.75], 1), ([1.0, 0.0], None)]
    for scores, truth in rows:
        sample = BaseDataElement(pred_score=torch.tensor(scores))
        if truth is not None:
            sample.gt_label = torch.tensor([truth])
        metric.process(None, [sample.to_dict()])
    found = metric.evaluate(5)
    assert found['pseudo_label/coverage'] == 0.8
    assert found['pseudo_label/accuracy'] == 0.75
    assert found['pseudo_label/selected_accuracy'] == pytest.approx(2 / 3)
    assert found['pseudo_label/share_max'] == found['pseudo_label/share_min'] == 0.5
    assert found['pseudo_label/class_accuracy/dog'] == 0.5 and found['pseudo_label/share/cat'] == 0.6


def test_wrong_arguments_and_predictions() -> None:
    with pytest.raises(ValueError, match='`threshold` must be in'):
        PseudoLabelQuality(threshold=2)
    with pytest.raises(ValueError, match='`per_class` must be'):
        PseudoLabelQuality(per_class=1)
    with pytest.raises(ValueError, match='pred_score'):
        PseudoLabelQuality().process(None, [dict(pred_sem_seg=None)])
