"""Avg-Clustering against vectors, the formula of the paper and finite differences."""

import json
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from mmssl.functional.avg_clustering import average_step_, is_reset, with_gradient

VECTORS = json.loads((Path(__file__).parent / 'layermatch_vectors.json').read_text())


def tensor(values: list) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_vector() -> None:
    feat, step = tensor(VECTORS['feat']), tensor(VECTORS['main_step'])
    main, average = tensor(VECTORS['main']), None
    target, mask = torch.tensor(VECTORS['pseudo']), tensor(VECTORS['mask'])
    for t in range(5):
        if is_reset(t, 3):
            average = main.clone()
        average.requires_grad_()
        features = feat.clone().requires_grad_()
        logits = F.linear(features, average[:, :-1], average[:, -1])
        loss = (F.cross_entropy(logits, target, reduction='none') * mask).mean()
        loss.backward()
        assert loss.item() == pytest.approx(VECTORS['loss'][t], abs=1e-9)
        torch.testing.assert_close(average.detach(), tensor(VECTORS['average'][t]), rtol=0, atol=1e-9)
        if str(t) in VECTORS['feat_grad']:
            torch.testing.assert_close(features.grad, tensor(VECTORS['feat_grad'][str(t)]), rtol=0, atol=1e-9)
        gradient, average = average.grad, average.detach()
        average_step_([average], [gradient], momentum=1 - 0.9, lr=0.5)
        main = main + step
        if t == 2:
            torch.testing.assert_close(main, tensor(VECTORS['main_t3']))


@pytest.mark.parametrize('momentum', [0.0, 0.001, 0.3, 1.0])
def test_step_is_the_formula_of_the_paper(momentum: float) -> None:
    average, gradient = torch.randn(5, 4, dtype=torch.float64), torch.randn(5, 4, dtype=torch.float64)
    moved = average - 0.7 * gradient
    expected = (1 - momentum) * average + momentum * moved
    average_step_([average], [gradient], momentum, 0.7)
    torch.testing.assert_close(average, expected)


def test_published_constants_move_float32_and_not_half_precision() -> None:
    steps = {}
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        average = torch.full((3,), 0.25, dtype=dtype)
        average_step_([average], [torch.ones(3, dtype=dtype)], momentum=0.001, lr=5e-4)
        steps[dtype] = (0.25 - average.double()).max().item()
    assert steps[torch.float32] == pytest.approx(5e-7, rel=0.05)
    assert steps[torch.bfloat16] == steps[torch.float16] == 0


def test_bad_steps_are_refused() -> None:
    a = [torch.zeros(1)]
    for arguments in ((a, [], 0.1, 0.1), (a, a, 1.1, 0.1), (a, a, -0.1, 0.1), (a, a, 0.1, -1.0), (a, a, 0.1, 1e400)):
        with pytest.raises(ValueError, match='average_step_'):
            average_step_(*arguments)


def test_resets() -> None:
    assert [t for t in range(9) if is_reset(t, 4)] == [0, 4, 8]
    assert all(is_reset(t, 1) for t in range(5))


def test_known_gradient_is_the_gradient() -> None:
    x, w = (torch.randn(6, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))

    def loss(x: Tensor, w: Tensor) -> Tensor:
        middle = [(x * w).tanh(), x**2]
        ends = [tensor.detach().requires_grad_() for tensor in middle]
        value = (ends[0] * ends[1]).sum() ** 2
        return with_gradient(value, middle, torch.autograd.grad(value, ends))

    def plain(x: Tensor, w: Tensor) -> Tensor:
        return ((x * w).tanh() * x**2).sum() ** 2

    assert torch.equal(loss(x, w), plain(x, w))
    for factor in (1.0, 3.0, 65536.0):
        found, expected = (torch.autograd.grad(factor * f(x, w), (x, w)) for f in (loss, plain))
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b)
    assert torch.autograd.gradcheck(loss, (x, w))
