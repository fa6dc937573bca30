"""Thresholds with their state: published vectors, plain second implementations, the checkpoint, and what is refused."""

import math
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor

from mmssl.models.thresholds import DistributionAlignment, FlexMatchThreshold
from mmssl.registry import MODELS


def build(name: str, num_classes: int = 3, **options: Any) -> torch.nn.Module:
    return MODELS.build(dict(type=f'mmssl.{name}', num_classes=num_classes, **options))


def batches(count: int, size: int = 8, num_classes: int = 3) -> list[Tensor]:
    generator = torch.Generator().manual_seed(3)
    return [(2 * torch.randn(size, num_classes, generator=generator)).softmax(dim=1) for _ in range(count)]


def test_self_adaptive_threshold_equals_the_vectors() -> None:
    threshold = build('SelfAdaptiveThreshold', momentum=0.1)
    first = torch.tensor([[2, 0, -1], [0.3, 0.2, 0.1], [-1, 1.5, 0], [0, 0.1, 1.2]]).softmax(dim=1)
    second = torch.tensor([[3, 0, -1], [0.1, 0.2, 0.9], [-1, 2.5, 0], [0.5, 0.4, 0.6]]).softmax(dim=1)
    assert threshold(first).tolist() == [1, 1, 1, 1]
    assert threshold.global_threshold.item() == pytest.approx(0.364727199787, rel=1e-6)
    assert threshold(second).tolist() == [1, 1, 1, 0]
    assert threshold.global_threshold.item() == pytest.approx(0.396163341738, rel=1e-6)
    assert threshold.model_prob.tolist() == pytest.approx([0.3409719361, 0.3394031145, 0.3196249494], rel=1e-6)
    assert threshold.label_hist.tolist() == pytest.approx([0.34, 0.3175, 0.3425], rel=1e-6)
    assert threshold.class_thresholds().tolist() == pytest.approx([0.3961633417, 0.394340583, 0.3713610262], rel=1e-6)
    assert threshold.statistics()['threshold'].item() == threshold.global_threshold.item()


def test_self_adaptive_threshold_with_quantile_and_clip() -> None:
    threshold = build('SelfAdaptiveThreshold', momentum=1.0, quantile=0.75, clip=(0.0, 0.6))
    probs = torch.tensor([[0.5, 0.5, 0], [0.4, 0.3, 0.3], [0.45, 0.35, 0.2], [0.55, 0.4, 0.05], [0.9, 0.1, 0]])
    threshold(probs)
    assert threshold.global_threshold.item() == pytest.approx(0.55)
    threshold(torch.tensor([[1.0, 0, 0]]))
    assert threshold.global_threshold.item() == pytest.approx(0.6)


class PlainFlexMatch:
    """With python lists, one image after the other."""

    def __init__(self, num_samples: int, threshold: float) -> None:
        self.last, self.threshold = [-1] * num_samples, threshold

    def __call__(self, probs: Tensor, ids: list[int], num_classes: int) -> list[float]:
        counts = [self.last.count(c) for c in range(num_classes)]
        most = max(*counts, self.last.count(-1))
        weights = []
        for row in probs.tolist():
            status = counts[row.index(max(row))] / most
            weights.append(float(max(row) >= self.threshold * status / (2 - status)))
        for row, number in sorted(zip(probs.tolist(), ids, strict=True), key=lambda pair: max(pair[0])):
            if max(row) >= self.threshold:
                self.last[number] = row.index(max(row))
        return weights


def test_flexmatch_equals_a_plain_implementation() -> None:
    ours, plain = build('FlexMatchThreshold', threshold=0.7, num_samples=20), PlainFlexMatch(20, 0.7)
    generator = torch.Generator().manual_seed(0)
    weights = []
    for probs in batches(30):
        ids = torch.randint(0, 20, (8,), generator=generator)  # with repetitions inside a batch
        weight = ours(probs, sample_ids=ids).tolist()
        assert weight == plain(probs, ids.tolist(), 3)
        assert ours.last_prediction.tolist() == plain.last
        weights += weight
    assert 0 < sum(weights) < len(weights)


def test_flexmatch_needs_its_table_and_its_numbers() -> None:
    probs = batches(1)[0]
    ids = torch.arange(8)
    with pytest.raises(ValueError, match='FlexMatchHook'):
        build('FlexMatchThreshold')(probs, sample_ids=ids)
    with pytest.raises(ValueError, match='sample_idx'):
        build('FlexMatchThreshold', num_samples=8)(probs)
    with pytest.raises(ValueError, match='the number 7, but the table is for 7 images'):
        build('FlexMatchThreshold', num_samples=7)(probs, sample_ids=ids)
    assert FlexMatchThreshold.required_hooks({}) == ('mmssl.FlexMatchHook',)
    assert FlexMatchThreshold.required_hooks(dict(num_samples=7)) == ()


def test_flexmatch_table_and_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[str] = []
    monkeypatch.setattr(
        'mmssl.models.thresholds.flexmatch_threshold.print_log', lambda text, **_: messages.append(text)
    )
    trained = build('FlexMatchThreshold', num_samples=8, threshold=0.5)
    trained(batches(1)[0], sample_ids=torch.arange(8))
    state = trained.state_dict()
    unsized = build('FlexMatchThreshold')
    unsized.load_state_dict(state)
    assert torch.equal(unsized.last_prediction, trained.last_prediction) and (trained.last_prediction >= 0).any()

    same = build('FlexMatchThreshold')
    same.set_num_samples(8)
    same.load_state_dict(state)
    same.check_resumed()
    other = build('FlexMatchThreshold')
    other.set_num_samples(9)
    other.load_state_dict(dict(state))
    assert other.last_prediction.tolist() == [-1] * 9 and len(messages) == 1
    with pytest.raises(ValueError, match=r'knows 8 unlabeled images, but .* has 9'):
        other.check_resumed()
    with pytest.raises(ValueError, match=r'length of the unlabeled source of train_dataloader\.dataset, 9, got 8'):
        trained.set_num_samples(9)
    trained.reset()
    assert trained.last_prediction.tolist() == [-1] * 8


def test_softmatch_equals_a_plain_implementation() -> None:
    threshold = build('SoftMatchWeight', momentum=0.2)
    mean, variance = 1 / 3, 1.0
    for probs in batches(5):
        weights = threshold(probs).tolist()
        top = [max(row) for row in probs.tolist()]
        average = sum(top) / len(top)
        mean = 0.8 * mean + 0.2 * average
        variance = 0.8 * variance + 0.2 * sum((p - average) ** 2 for p in top) / (len(top) - 1)
        assert weights == pytest.approx([math.exp(-(min(p - mean, 0) ** 2) * 4 / (2 * variance)) for p in top])
    assert torch.isfinite(build('SoftMatchWeight')(probs[:1])).all()


def test_adamatch_threshold() -> None:
    threshold = build('AdaMatchThreshold', threshold=0.9)
    labeled = torch.tensor([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2]])
    probs = torch.tensor([[0.64, 0.3, 0.06], [0.62, 0.3, 0.08]])
    assert threshold(probs, labeled_probs=labeled).tolist() == [1, 0]
    assert threshold.statistics()['threshold'].item() == pytest.approx(0.9 * 0.7)
    with pytest.raises(ValueError, match='labeled_probs'):
        threshold(probs)


def test_dash_equals_a_plain_implementation() -> None:
    threshold = build('DashThreshold', interval=2, gamma=2.0, minimum=0.3, temperature=0.5, warmup_momentum=0.3)
    average = 0.0
    for count, losses in enumerate(([2.0, 3.0], [1.0, 2.0], [1.5, 1.5], [1.0, 1.2]), start=1):
        threshold.observe_labeled(torch.tensor(losses))
        momentum = max(1 / count, 0.3)
        average = (1 - momentum) * average + momentum * sum(losses) / 2
    assert threshold.labeled_loss.item() == pytest.approx(average)
    kinds = set()
    for iteration, probs in enumerate(batches(8)):
        rho = max(1.0001 * 2.0 ** -(iteration // 2) * average, 0.3)
        targets = threshold.target_logits(probs.log()).softmax(dim=1)
        expected = []
        for row, target in zip(probs.tolist(), targets.tolist(), strict=True):
            soft = [p**2 for p in row]
            soft = [p / sum(soft) for p in soft]
            hard = [float(p == max(row)) for p in row]
            assert target == pytest.approx(soft if rho > 0.3 else hard, abs=1e-6)
            expected.append(float(-sum(t * math.log(p) for t, p in zip(target, row, strict=True)) <= rho))
        kinds.add(rho > 0.3)
        assert threshold(probs).tolist() == expected
        assert threshold.statistics()['threshold'].item() == pytest.approx(rho)
    assert kinds == {True, False}


def test_alignment_equals_a_plain_implementation() -> None:
    ours = DistributionAlignment(3, target='labeled', momentum=0.3)
    p, t = None, [1 / 3] * 3
    for probs, labeled in zip(batches(4), batches(4, size=5), strict=True):
        aligned = ours(probs, labeled)
        mean, seen = probs.mean(dim=0).tolist(), labeled.mean(dim=0).tolist()
        p = mean if p is None else [0.7 * a + 0.3 * b for a, b in zip(p, mean, strict=True)]
        t = [0.7 * a + 0.3 * b for a, b in zip(t, seen, strict=True)]
        for row, result in zip(probs.tolist(), aligned.tolist(), strict=True):
            raw = [q * (b + 1e-6) / (a + 1e-6) for q, a, b in zip(row, p, t, strict=True)]
            assert result == pytest.approx([value / sum(raw) for value in raw], rel=1e-5)
    assert DistributionAlignment(3, target=[2, 1, 1]).target.tolist() == [0.5, 0.25, 0.25]


STATEFUL = dict(
    SelfAdaptiveThreshold={},
    SoftMatchWeight={},
    FlexMatchThreshold=dict(num_samples=8, threshold=0.5),
    DashThreshold={},
    DistributionAlignment=dict(target='labeled'),
)


@pytest.mark.parametrize('name', STATEFUL)
def test_state_goes_on_after_a_resume_and_starts_over_on_request(name: str) -> None:
    def step(piece: torch.nn.Module, probs: Tensor) -> Tensor:
        if name == 'DistributionAlignment':
            return piece(probs, probs.flip(0))
        if name == 'DashThreshold':
            piece.observe_labeled(probs[:, 0])
        return piece(probs, sample_ids=torch.arange(8))

    one = build(name, **STATEFUL[name])
    start = deepcopy(one.state_dict())
    data = batches(4)
    for probs in data[:2]:
        step(one, probs)
    two = build(name, **STATEFUL[name])
    two.load_state_dict({key: value.clone() for key, value in one.state_dict().items()})
    for probs in data[2:]:
        assert torch.equal(step(one, probs), step(two, probs))
    for key, value in one.state_dict().items():
        assert torch.equal(value, two.state_dict()[key])
    assert any(not torch.equal(value, start[key]) for key, value in one.state_dict().items())
    one.reset()
    assert all(torch.equal(value, start[key]) for key, value in one.state_dict().items())


@pytest.mark.parametrize(
    ('name', 'options', 'message'),
    [
        ('FixedThreshold', dict(threshold=1.5), 'FixedThreshold: `threshold` must be in'),
        ('FixedThreshold', dict(num_classes=1), '`num_classes` must be an integer >= 2, got 1'),
        ('SelfAdaptiveThreshold', dict(momentum=0), '`momentum` must be in'),
        ('SelfAdaptiveThreshold', dict(quantile=1.0), '`quantile` must be in'),
        ('SelfAdaptiveThreshold', dict(clip=(0.9, 0.1)), '`clip` must be None or'),
        ('SoftMatchWeight', dict(n_sigma=0), '`n_sigma` must be > 0'),
        ('FlexMatchThreshold', dict(warmup=1), '`warmup` must be True or False'),
        ('FlexMatchThreshold', dict(num_samples=0), '`num_samples` must be an integer >= 1'),
        ('AdaMatchThreshold', dict(threshold='0.9'), "`threshold` must be in .0, 1., got '0.9'"),
        ('DashThreshold', dict(gamma=1.0), '`gamma` must be in'),
        ('DashThreshold', dict(temperature=0), '`temperature` must be in'),
        ('DashThreshold', dict(interval=0.5), '`interval` must be an integer'),
        ('DistributionAlignment', dict(target='even'), "`target` must be 'uniform', 'labeled' or 3 numbers"),
        ('DistributionAlignment', dict(target=[1, 2]), '`target` must be'),
        ('DistributionAlignment', dict(apply_to='targets'), '`apply_to` must be one of'),
    ],
)
def test_wrong_arguments_name_themselves(name: str, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(name, **dict(dict(num_classes=3), **options))
