"""Equations of FPL against hand vectors, finite differences and plain loops."""

import json
import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from mmssl.functional import fpl

VECTORS = json.loads((Path(__file__).parent / 'fpl_vectors.json').read_text())
DTYPES = [(torch.float64, 1e-6), (torch.float32, 1e-4)]


def close(actual, expected, tol):
    expected = torch.as_tensor(expected, dtype=actual.dtype)
    assert torch.allclose(actual, expected, rtol=tol, atol=tol), (actual - expected).abs().max()


@pytest.mark.parametrize(('dtype', 'tol'), DTYPES)
def test_assignment_vector(dtype, tol):
    teacher = torch.tensor(VECTORS['teacher'], dtype=dtype)
    assert fpl.fuzzy_positive_assignment(teacher).k.tolist() == VECTORS['k_no_cap']
    fuzzy = fpl.fuzzy_positive_assignment(teacher, max_k=3)
    assert fuzzy.k.tolist() == VECTORS['k_cap_3']
    assert fuzzy.positive.int().tolist() == VECTORS['positive']
    probs = teacher.softmax(1)
    close(fuzzy.positive_prob, (probs * fuzzy.positive).sum(1), tol)
    close(fuzzy.negative_prob, (probs * ~fuzzy.positive).amax(1), tol)


@pytest.mark.parametrize(('dtype', 'tol'), DTYPES)
def test_loss_and_gradient_vector(dtype, tol):
    student = torch.tensor(VECTORS['student'], dtype=dtype, requires_grad=True)
    positive = torch.tensor(VECTORS['positive'], dtype=torch.bool)
    loss = fpl.fuzzy_positive_loss(student, positive)
    close(loss, VECTORS['loss'], tol)
    close(fpl.fuzzy_positive_gradient(student, positive), VECTORS['grad'], tol)
    close(torch.autograd.grad(loss.sum(), student)[0], VECTORS['grad'], tol)


@pytest.mark.parametrize(('dtype', 'tol'), DTYPES)
@pytest.mark.parametrize('name', VECTORS['weights'])
def test_weight_vector(name, dtype, tol):
    mode, bound = name.split()
    fuzzy = fpl.fuzzy_positive_assignment(torch.tensor(VECTORS['teacher'], dtype=dtype), max_k=3)
    close(fpl.fuzzy_positive_weight(fuzzy.positive_prob, fuzzy.negative_prob, fuzzy.k, mode, 50., bound),
          VECTORS['weights'][name], tol)


@pytest.mark.parametrize('mode', fpl.WEIGHT_MODES[:4])
@pytest.mark.parametrize('bound', fpl.WEIGHT_BOUNDS)
def test_weight_falls_from_one_to_zero(mode, bound):
    k = torch.full((101,), 3)
    q = torch.linspace(0, 0.25, 101, dtype=torch.float64)
    weight = fpl.fuzzy_positive_weight(torch.full_like(q, 0.75), q, k, mode, 50., bound)
    assert weight[0] == 1
    assert weight[-1].abs() < 1e-9
    assert (weight.diff() < 0).all()
    second = weight.diff().diff()
    if mode == 'concave' and bound == 'positive_mean':
        assert (second < 0).all()
    if mode.startswith('convex') and bound == 'positive_mean':
        assert (second > 0).all()


def test_weight_stays_in_range_when_rounding_puts_q_above_its_bound():
    q = torch.tensor([0.25 + 1e-7])
    for mode in fpl.WEIGHT_MODES:
        weight = fpl.fuzzy_positive_weight(torch.tensor([0.25]), q, torch.tensor([1]), mode)
        assert 0 <= weight.item() <= 1


@pytest.mark.parametrize(('dtype', 'tol'), DTYPES)
def test_comparison_loss_vectors(dtype, tol):
    student = torch.tensor(VECTORS['student'], dtype=dtype, requires_grad=True)
    teacher = torch.tensor(VECTORS['teacher'], dtype=dtype)
    close(fpl.soft_pseudo_label_loss(student, teacher), VECTORS['soft_loss'], tol)
    close(fpl.hard_pseudo_label_loss(student, teacher), VECTORS['cross_entropy'], tol)
    loss, negative = fpl.negative_learning_loss(student, teacher, 0.2)
    assert negative.int().tolist() == VECTORS['negative']
    close(loss, VECTORS['negative_loss'], tol)
    close(torch.autograd.grad(loss[1], student)[0][1], VECTORS['negative_grad_pixel_1'], tol)


def test_one_positive_is_cross_entropy():
    z = torch.randn(6, 9, dtype=torch.float64, requires_grad=True)
    label = torch.randint(0, 9, (6,))
    loss = fpl.fuzzy_positive_loss(z, F.one_hot(label, 9).bool())
    expected = F.cross_entropy(z, label, reduction='none')
    close(loss, expected, 1e-12)
    close(fpl.fuzzy_positive_gradient(z, F.one_hot(label, 9).bool()), z.softmax(1) - F.one_hot(label, 9), 1e-12)


@pytest.mark.parametrize('seed', range(5))
def test_gradient_is_that_of_finite_differences(seed):
    torch.manual_seed(seed)
    z = torch.randn(4, 6, dtype=torch.float64) * 3
    positive = fpl.fuzzy_positive_assignment(torch.randn(4, 6, dtype=torch.float64)).positive
    gradient = fpl.fuzzy_positive_gradient(z, positive)
    for i in range(6):
        step = torch.zeros(6, dtype=torch.float64)
        step[i] = 1e-5
        numeric = (fpl.fuzzy_positive_loss(z + step, positive) - fpl.fuzzy_positive_loss(z - step, positive)) / 2e-5
        close(gradient[:, i], numeric, 1e-8)


def test_gradient_properties():
    """Pull and push have the same sum in (0, 1); positives are pulled up, the smallest the most."""
    torch.manual_seed(0)
    z = torch.randn(200, 8, dtype=torch.float64) * 4
    positive = fpl.fuzzy_positive_assignment(torch.randn(200, 8, dtype=torch.float64)).positive
    gradient = fpl.fuzzy_positive_gradient(z, positive)
    pull, push = (gradient * positive).abs().sum(1), (gradient * ~positive).abs().sum(1)
    close(pull, push, 1e-12)
    assert ((pull > 0) & (pull < 1)).all()
    assert (gradient[positive] < 0).all()
    assert (gradient[~positive] > 0).all()
    assert (gradient.norm(dim=1) <= math.sqrt(2)).all()
    smallest = z.masked_fill(~positive, math.inf).argmin(1)
    assert torch.equal(gradient.argmin(1), smallest)


def test_k_rules():
    assert fpl.k_from_n(5, None, 'n-1', 0.5) == [1, 1, 2, 3, 4]
    assert fpl.k_from_n(5, None, 'n', 0.5) == [1, 2, 3, 4, 4]
    assert fpl.k_from_n(5, None, 'ratio', 0.5) == [1, 1, 1, 2, 2]
    assert fpl.k_from_n(5, 3, 'n-1', 0.5) == [1, 1, 2, 3, 3]
    assert fpl.k_from_n(3, 3, 'n', 0.5) == [1, 2, 2]
    assert fpl.k_from_n(2, None, 'n', 0.5) == [1, 1]
    # 0.29 * 100 is 28.999... in binary.
    assert fpl.k_from_n(101, None, 'ratio', 0.29)[99] == 29


def test_cumulative_probability_that_hits_the_bound_exactly_reaches_it():
    probs = torch.tensor([[0.5, 0.25, 0.125, 0.125]], dtype=torch.float64)
    # 0.5 + 0.25 = 0.75 is exact: n = 2.
    assert fpl.fuzzy_positive_assignment(probs.log(), 0.75 - 1e-12, k_rule='n').k.item() == 2
    assert fpl.fuzzy_positive_assignment(probs.log(), 0.75 + 1e-12, k_rule='n').k.item() == 3


def test_ties_are_taken_in_class_order():
    fuzzy = fpl.fuzzy_positive_assignment(torch.zeros(1, 10))
    k = fuzzy.k.item()
    assert 7 <= k <= 9
    assert fuzzy.positive[0].tolist() == [True] * k + [False] * (10 - k)


def test_negative_learning_does_not_overflow_where_the_student_is_certain_of_a_negative():
    z = torch.tensor([[100., 0., 0.]], requires_grad=True)
    loss, _ = fpl.negative_learning_loss(z, torch.tensor([[0., 0., 20.]]))
    # -log(1 - p_0) = 100 - log 2, which softmax alone rounds to infinity.
    assert loss.item() == pytest.approx(100 - math.log(2), rel=1e-5)
    assert torch.autograd.grad(loss.sum(), z)[0].isfinite().all()


def test_accurate_log1p():
    x = torch.tensor([0., 1e-30, 1e-10, 1e-7, 3e-6, 0.1, 1., 50., 1e20])
    assert torch.allclose(fpl.accurate_log1p(x), torch.log1p(x), rtol=3e-7, atol=0)
