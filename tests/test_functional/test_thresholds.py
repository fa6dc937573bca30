"""Thresholds of the FixMatch family: published vectors, plain second implementations, properties, gradients."""

import math

import pytest
import torch
from torch import Tensor

from mmssl.functional import thresholds as T

D = torch.float64
WEAK = [
    [[2, 0, -1], [0.3, 0.2, 0.1], [-1, 1.5, 0], [0, 0.1, 1.2]],
    [[3, 0, -1], [0.1, 0.2, 0.9], [-1, 2.5, 0], [0.5, 0.4, 0.6]],
]
STRONG = torch.tensor([[1, 0.2, -0.5], [0.1, 0.4, 0], [-0.3, 0.8, 0.2], [0.2, 0, 0.7]], dtype=D)
EXPECTED = [
    dict(tau=0.364727199787, p=[0.3364543042, 0.3354071183, 0.3281385775], h=[0.35, 0.325, 0.325],
         taus=[0.3647271998, 0.3635920169, 0.3557126868], mask=[1, 1, 1, 1], batch=0.767495124008,
         selected=0.767495124008),
    dict(tau=0.396163341738, p=[0.3409719361, 0.3394031145, 0.3196249494], h=[0.34, 0.3175, 0.3425],
         taus=[0.3961633417, 0.394340583, 0.3713610262], mask=[1, 1, 1, 0], batch=0.606640114723,
         selected=0.808853486297, fairness=-9.09332124568),
]  # fmt: skip


def close(actual: Tensor, expected: object) -> None:
    torch.testing.assert_close(actual.to(D), torch.as_tensor(expected, dtype=D), rtol=1e-9, atol=1e-9)


def test_self_adaptive_thresholding_equals_the_vectors() -> None:
    tau, p, h = torch.tensor(1 / 3, dtype=D), torch.full((3,), 1 / 3, dtype=D), torch.full((3,), 1 / 3, dtype=D)
    for logits, expected in zip(WEAK, EXPECTED, strict=True):
        probs = torch.tensor(logits, dtype=D).softmax(dim=1)
        confidence, labels = probs.max(dim=1)
        tau = tau.lerp(confidence.mean(), 0.1)
        p = p.lerp(probs.mean(dim=0), 0.1)
        h = h.lerp(T.class_shares(labels, 3).to(D) / 4, 0.1)
        taus = T.self_adaptive_thresholds(tau, p)
        mask = confidence >= taus[labels]
        for key, value in (('tau', tau), ('p', p), ('h', h), ('taus', taus), ('mask', mask)):
            close(value, expected[key])
        ce = -STRONG.log_softmax(dim=1)[range(4), labels]
        close((ce * mask).mean(), expected['batch'])
        close((ce * mask).sum() / mask.sum(), expected['selected'])
        strong = STRONG.softmax(dim=1)
        loss = T.fairness_loss(
            strong[mask].sum(dim=0), T.class_shares(strong.argmax(dim=1), 3, mask.to(D)), p, h
        )
        if 'fairness' in expected:
            close(loss, expected['fairness'])


def plain_fairness(strong: Tensor, mask: Tensor, p: Tensor, h: Tensor) -> Tensor:
    """As written: means over the selected samples, class by class."""
    chosen = strong[mask]
    mean = chosen.mean(dim=0)
    terms_a, terms_b = [], []
    for c in range(len(p)):
        count = (chosen.argmax(dim=1) == c).double().mean()
        terms_a.append(p[c] / h[c] if h[c] > 0 else torch.zeros((), dtype=D))
        terms_b.append(mean[c] / count if count > 0 else 0 * mean[c])
    a, b = torch.stack(terms_a), torch.stack(terms_b)
    a, b = a / a.sum(), b / b.sum()
    return (a * (b + 1e-12).log()).sum()


def test_fairness_loss_equals_a_plain_implementation_and_its_gradient() -> None:
    generator = torch.Generator().manual_seed(0)
    p = torch.rand(5, generator=generator, dtype=D).softmax(dim=0)
    h = torch.tensor([0.4, 0.3, 0.2, 0.1, 0.0], dtype=D)
    logits = torch.randn(9, 5, generator=generator, dtype=D, requires_grad=True)
    mask = torch.tensor([1, 1, 0, 1, 1, 0, 1, 1, 1], dtype=torch.bool)

    def ours(z: Tensor) -> Tensor:
        strong = z.softmax(dim=1)
        counts = T.class_shares(strong.argmax(dim=1), 5, mask.to(D))
        return T.fairness_loss((strong * mask[:, None]).sum(dim=0), counts, p, h)

    close(ours(logits), plain_fairness(logits.softmax(dim=1), mask, p, h).item())
    assert torch.autograd.gradcheck(ours, (logits,))


def test_fairness_loss_over_nothing_is_an_attached_zero() -> None:
    logits = torch.randn(4, 3, requires_grad=True)
    prob_sum = (logits.softmax(dim=1) * 0).sum(dim=0)
    loss = T.fairness_loss(prob_sum, torch.zeros(3), torch.ones(3) / 3, torch.ones(3) / 3)
    loss.backward()
    assert loss.item() == 0 and logits.grad.abs().sum() == 0


def test_a_class_that_is_never_predicted_breaks_nothing() -> None:
    for tiny in (0.0, 1e-45, 1e-39):
        h = torch.tensor([1.0, tiny])
        loss = T.fairness_loss(torch.tensor([1.5, 0.5]), torch.tensor([2.0, 0.0]), torch.tensor([0.9, 0.1]), h)
        assert torch.isfinite(loss)


def plain_flexmatch(last: list[int], num_classes: int, warmup: bool) -> list[float]:
    """Over the table of last confident predictions (-1: none), with python's counting."""
    counts = [last.count(c) for c in range(num_classes)]
    most = max([*counts, last.count(-1)] if warmup else counts)
    return [count / most if most else 0.0 for count in counts]


@pytest.mark.parametrize('warmup', [True, False])
@pytest.mark.parametrize('last', [[-1] * 6, [0, 0, 1, -1, -1, -1], [0, 1, 1, 1, 2, -1], [2] * 6])
def test_flexmatch_status(last: list[int], warmup: bool) -> None:
    table = torch.tensor(last)
    status = T.flexmatch_status(T.class_shares(table, 3).long(), (table < 0).sum(), warmup)
    close(status, torch.tensor(plain_flexmatch(last, 3, warmup)).float())
    close(T.flexmatch_thresholds(torch.tensor([0.0, 0.5, 1.0]), 0.95), torch.tensor([0, 0.95 / 3, 0.95]).float())


def test_softmatch_weight() -> None:
    mean, variance = torch.tensor(0.6, dtype=D), torch.tensor(0.04, dtype=D)
    probs = torch.tensor([0.3, 0.5, 0.6, 0.9], dtype=D)
    expected = [math.exp(-((min(p - 0.6, 0)) ** 2) * 4 / (2 * 0.04)) for p in probs.tolist()]
    close(T.softmatch_weight(probs, mean, variance), expected)
    # A batch without any variance neither divides by zero nor drops what is at the mean.
    weight = T.softmatch_weight(torch.tensor([0.5, 0.7]), torch.tensor(0.7), torch.tensor(0.0))
    assert weight.tolist() == [0.0, 1.0]


def test_dash_threshold() -> None:
    start = torch.tensor(0.8, dtype=D)
    for step in (0, 1, 5):
        close(T.dash_threshold(start, torch.tensor(step)), max(1.0001 * 1.27**-step * 0.8, 0.05))
    close(T.dash_threshold(start, torch.tensor(1000)), 0.05)


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_one_hot_logits_are_exact(dtype: torch.dtype) -> None:
    logits = torch.tensor([[3e4, -3e4, 0.0], [0.1, 0.2, 0.15]], dtype=dtype)
    # Old versions of torch have no softmax of half precision on a CPU.
    probs = T.one_hot_logits(logits).to(torch.promote_types(dtype, torch.float32)).softmax(dim=1)
    assert probs.tolist() == [[1, 0, 0], [0, 1, 0]] and T.one_hot_logits(logits).dtype == dtype


def test_sharpened_logits() -> None:
    logits = torch.randn(4, 3, dtype=D)
    close(T.sharpened_logits(logits, 0.4).softmax(dim=1), (logits / 0.4).softmax(dim=1))
    assert T.sharpened_logits(logits, 1.0) is logits
    extreme = T.sharpened_logits(torch.tensor([[3e38, -3e38, 0.0]]), 0.1)
    assert torch.isfinite(extreme).all() and extreme.softmax(dim=1).tolist() == [[1, 0, 0]]


def test_distribution_cross_entropy() -> None:
    logits, target = torch.randn(4, 3, dtype=D), torch.randn(4, 3, dtype=D)
    expected = [
        -sum(q * math.log(p) for q, p in zip(row_q, row_p, strict=True))
        for row_q, row_p in zip(target.softmax(dim=1).tolist(), logits.softmax(dim=1).tolist(), strict=True)
    ]
    close(T.distribution_cross_entropy(logits, target), expected)
    assert T.distribution_cross_entropy(logits.half(), target.half()).dtype == torch.float32


def test_alignment() -> None:
    probs = torch.tensor([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1]], dtype=D)
    mean = probs.mean(dim=0)
    target = torch.full((3,), 1 / 3, dtype=D)
    for row, aligned in zip(probs.tolist(), T.align_distribution(probs, target, mean).tolist(), strict=True):
        raw = [q * (1 / 3 + 1e-6) / (m + 1e-6) for q, m in zip(row, mean.tolist(), strict=True)]
        assert aligned == pytest.approx([value / sum(raw) for value in raw])
    close(T.align_distribution(probs, mean, mean), probs)


@pytest.mark.parametrize('schedule', ['linear', 'exp', 'log'])
def test_training_signal_annealing(schedule: str) -> None:
    values = [T.training_signal_threshold(t / 10, 4, schedule) for t in range(11)]
    assert values == sorted(values) and values[0] >= 0.25 and values[-1] <= 1
    alpha = dict(linear=0.5, exp=math.exp(-2.5), log=1 - math.exp(-2.5))[schedule]
    assert values[5] == pytest.approx(alpha * 0.75 + 0.25)
