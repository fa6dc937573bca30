"""Gradient surgery against the worked vectors, a plain implementation, and the properties that are promised."""

import math

import pytest
import torch
from torch import Tensor

from mmssl.functional.gradient_surgery import decouple, inner_products, pcgrad_combination, rgd_combination

G_P = [1.0, -2.0, 0.5, 0.0]
ALPHA, SCHEDULE = 0.414106963113, 0.8
# Name: g_r, decoupled, gamma, beta, combined.
CASES = {
    'conflict': ([-3, 2, 1, 4], [-1.761904762, -0.4761904762, 1.619047619, 4], 0.489033754474, 0.16200982634,
                 [0.7145541155, -2.077147536, 0.7623016236, 0.6480393054]),
    'compatible': ([3, -1, 2, 6], [3, -1, 2, 6], 0.32403703492, 0.107348793974,
                   [1.322046382, -2.107348794, 0.7146975879, 0.6440927638]),
    'orthogonal': ([2, 1, 0, 1], [2, 1, 0, 1], 0.935414346693, 0.309889275489,
                   [1.619778551, -1.690110725, 0.5, 0.3098892755]),
    'small': ([0.1, -0.1, 0, 0.1], [0.1, -0.1, 0, 0.1], 1, 0.33128557049,
              [1.033128557, -2.033128557, 0.5, 0.03312855705]),
    'opposite': ([-2, 4, -1, 0], [0, 0, 0, 0], 1, None, [1, -2, 0.5, 0]),
}  # yapf: disable


def plain_rgd(g_p: Tensor, g_r: Tensor, coefficient: float, balance: str | None, projection: bool = True) -> Tensor:
    """The same, step by step on the vectors."""
    g_r = g_r.clone()
    size = g_r.norm()
    if projection and torch.dot(g_p, g_r) < 0:
        g_r -= torch.dot(g_p, g_r) / (g_p.norm() ** 2 + 1e-12) * g_p
        if g_r.norm() < 1e-6 * size:
            g_r.zero_()
    gamma = {'min': min(1.0, float(g_p.norm() / (g_r.norm() + 1e-12))),
             'ratio': float(g_p.norm() / (g_r.norm() + 1e-12)), None: 1.0}[balance]
    return g_p + coefficient * gamma * g_r


def plain_pcgrad(g_p: Tensor, g_r: Tensor) -> Tensor:
    total = torch.zeros_like(g_p)
    for own, other in ((g_p, g_r), (g_r, g_p)):
        inner = torch.dot(own, other)
        total += own - inner / other.norm() ** 2 * other if inner < 0 else own
    return total


@pytest.mark.parametrize('name', CASES)
def test_worked_vectors(name: str) -> None:
    g_r, decoupled, gamma, beta, expected = CASES[name]
    g_p, g_r = torch.tensor(G_P, dtype=torch.float64), torch.tensor(g_r, dtype=torch.float64)
    chosen = rgd_combination(*inner_products(g_p, g_r), coefficient=SCHEDULE * ALPHA)
    combined = chosen.primary * g_p + chosen.auxiliary * g_r
    torch.testing.assert_close(combined, torch.tensor(expected, dtype=torch.float64), atol=1e-8, rtol=0)
    if beta is not None:
        assert float(chosen.balance) == pytest.approx(gamma, abs=1e-9)
        assert float(chosen.auxiliary) == pytest.approx(beta, abs=1e-9)
        dec = torch.tensor(decoupled, dtype=torch.float64)
        torch.testing.assert_close((combined - g_p) / chosen.auxiliary, dec, atol=1e-7, rtol=0)
    assert bool(chosen.conflict) == (torch.dot(g_p, g_r) < 0)


def test_worked_vector_of_pcgrad() -> None:
    g_p, g_r = torch.tensor(G_P, dtype=torch.float64), torch.tensor([-3.0, 2.0, 1.0, 4.0], dtype=torch.float64)
    chosen = pcgrad_combination(*inner_products(g_p, g_r))
    expected = torch.tensor([-1.411904762, -2.042857143, 2.335714286, 4.866666667], dtype=torch.float64)
    torch.testing.assert_close(chosen.primary * g_p + chosen.auxiliary * g_r, expected, atol=1e-8, rtol=0)
    torch.testing.assert_close(plain_pcgrad(g_p, g_r), expected, atol=1e-8, rtol=0)


@pytest.mark.parametrize('balance', ['min', 'ratio', None])
@pytest.mark.parametrize('projection', [True, False])
def test_equals_the_plain_implementation(balance: str | None, projection: bool) -> None:
    for seed in range(50):
        generator = torch.Generator().manual_seed(seed)
        g_p = torch.randn(30, generator=generator, dtype=torch.float64)
        g_r = 10 ** (seed / 10 - 2.5) * torch.randn(30, generator=generator, dtype=torch.float64) - 0.3 * g_p
        chosen = rgd_combination(*inner_products(g_p, g_r), 0.7, balance, projection=projection)
        combined = chosen.primary * g_p + chosen.auxiliary * g_r
        torch.testing.assert_close(combined, plain_rgd(g_p, g_r, 0.7, balance, projection))
        chosen = pcgrad_combination(*inner_products(g_p, g_r))
        torch.testing.assert_close(chosen.primary * g_p + chosen.auxiliary * g_r, plain_pcgrad(g_p, g_r))


@pytest.mark.parametrize('scale', [1e-6, 1.0, 65536.0])
def test_what_is_promised_holds_for_any_pair_in_single_precision(scale: float) -> None:
    for seed in range(100):
        generator = torch.Generator().manual_seed(seed)
        g_p = scale * torch.randn(1000, generator=generator)
        g_r = scale * 10 ** (seed / 20 - 2) * torch.randn(1000, generator=generator) - (seed % 7) * g_p
        combined = decouple(g_p, g_r, coefficient=0.8).double()
        square = g_p.double().square().sum()
        assert torch.dot(combined, g_p.double()) >= square * (1 - 1e-6)
        assert (combined - g_p).norm() <= 0.8 * square.sqrt() * (1 + 1e-6)


def test_the_coefficients_do_not_depend_on_a_loss_scale() -> None:
    g_p, g_r = torch.randn(2, 100)
    plain = rgd_combination(*inner_products(g_p, g_r))
    scaled = rgd_combination(*inner_products(65536 * g_p, 65536 * g_r))
    for name in ('primary', 'auxiliary', 'cosine', 'cosine_after'):
        torch.testing.assert_close(getattr(plain, name), getattr(scaled, name))


@pytest.mark.parametrize('factor', [1e-8, 1.0, 1e8])
def test_opposite_gradients_leave_the_primary_one(factor: float) -> None:
    g_p = torch.randn(10000)
    torch.testing.assert_close(decouple(g_p, -factor * g_p, balance='ratio'), g_p)


def test_a_gradient_that_is_zero() -> None:
    g_p = torch.randn(10)
    assert torch.equal(decouple(g_p, torch.zeros(10)), g_p)
    # Nothing bounds the step of the auxiliary loss where the primary one has no gradient, so it makes none.
    assert torch.equal(decouple(torch.zeros(10), g_p), torch.zeros(10))
    chosen = rgd_combination(*inner_products(torch.zeros(10), g_p))
    assert chosen.cosine == 0 and chosen.cosine_after == 0 and not chosen.conflict


def test_one_set_of_coefficients_for_each_layer() -> None:
    products = torch.stack([inner_products(*torch.randn(2, 20)) for _ in range(5)])
    chosen = rgd_combination(*products.T)
    for index, row in enumerate(products):
        assert float(chosen.primary[index]) == pytest.approx(float(rgd_combination(*row).primary))


def test_inner_products_are_sums_in_double_precision() -> None:
    first, second = torch.full((300,), 1e30), torch.full((300,), -1e30)
    assert inner_products(first, second, chunk=7).tolist() == pytest.approx([3e62, 3e62, -3e62], rel=1e-6)
    first = torch.randn(1001)
    assert inner_products(first, first, chunk=10)[2] == pytest.approx(float(first.double().square().sum()), rel=1e-14)


def test_a_gradient_that_is_not_finite_stays_so() -> None:
    g_p = torch.tensor([1.0, math.inf])
    assert not torch.isfinite(decouple(g_p, torch.ones(2))).all()


def test_unknown_balance() -> None:
    with pytest.raises(ValueError, match=r"must be one of .* got 'max'"):
        rgd_combination(*torch.ones(3), balance='max')
