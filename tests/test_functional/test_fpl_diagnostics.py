"""Diagnostics of FPL against hand vectors and the definitions."""

import json
import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from mmssl.functional import fpl_diagnostics as diag
from mmssl.functional.fpl import fuzzy_positive_assignment, fuzzy_positive_gradient

VECTORS = json.loads((Path(__file__).parent / 'fpl_vectors.json').read_text())
def vectors(dtype=torch.float64):
    student, teacher = torch.tensor(VECTORS['student'], dtype=dtype), torch.tensor(VECTORS['teacher'], dtype=dtype)
    fuzzy = fuzzy_positive_assignment(teacher, max_k=3).positive
    return student, teacher, torch.tensor(VECTORS['gt']), fuzzy, diag.one_hot_like(teacher.argmax(1), teacher)


@pytest.mark.parametrize(('dtype', 'tol'), [(torch.float64, 1e-6), (torch.float32, 1e-4)])
def test_vectors(dtype, tol):
    student, teacher, gt, fuzzy, top = vectors(dtype)
    for actual, expected in [(diag.positive_gradient_score(student, fuzzy, gt), VECTORS['r_fpl']),
                             (diag.positive_gradient_score(student, top, gt), VECTORS['r_vanilla']),
                             (diag.ideal_cosine(student, fuzzy, gt), VECTORS['cos_fpl']),
                             (diag.ideal_cosine(student, top, gt), VECTORS['cos_vanilla'])]:
        assert torch.allclose(actual, torch.tensor(expected, dtype=dtype), atol=tol)
    assert diag.pixel_cases(teacher, fuzzy, gt).tolist() == [1, 2, 3, 2, 3]


def test_score_and_cosine_are_their_definitions():
    torch.manual_seed(0)
    z, t = torch.randn(300, 6, dtype=torch.float64) * 2, torch.randn(300, 6, dtype=torch.float64)
    gt = torch.randint(0, 6, (300,))
    positive = fuzzy_positive_assignment(t).positive
    gradient = fuzzy_positive_gradient(z, positive)
    score = gradient.gather(1, gt[:, None])[:, 0] / (gradient * positive).sum(1)
    assert torch.allclose(diag.positive_gradient_score(z, positive, gt), score)
    ideal = z.softmax(1) - F.one_hot(gt, 6)
    assert torch.allclose(diag.ideal_cosine(z, positive, gt), F.cosine_similarity(gradient, ideal))
    assert torch.allclose(diag.gradient_norm(z, positive), gradient.norm(dim=1))
    assert (score.abs() <= 1).all()


def test_score_by_case_in_closed_form():
    """Case 1 and 2: (1/p_gt) / sum_Y (1/p); case 3: -p_gt / sum of the negatives. Vanilla: -p_gt / (1 - p_pseudo)."""
    torch.manual_seed(0)
    z, t = torch.randn(500, 6, dtype=torch.float64), torch.randn(500, 6, dtype=torch.float64)
    gt, p = torch.randint(0, 6, (500,)), z.softmax(1)
    fuzzy = fuzzy_positive_assignment(t, cum_prob=0.7).positive
    top = diag.one_hot_like(t.argmax(1), t)
    case, p_gt = diag.pixel_cases(t, fuzzy, gt), p.gather(1, gt[:, None])[:, 0]
    assert set(case.tolist()) == {1, 2, 3}
    inside = (1 / p_gt) / (fuzzy / p).sum(1)
    expected = torch.where(case < 3, inside, -p_gt / (p * ~fuzzy).sum(1))
    assert torch.allclose(diag.positive_gradient_score(z, fuzzy, gt), expected)
    vanilla = torch.where(case == 1, torch.ones_like(p_gt), -p_gt / (1 - (p * top).sum(1)))
    assert torch.allclose(diag.positive_gradient_score(z, top, gt), vanilla)


def test_vanishing_gradients_keep_score_and_angle():
    z = torch.tensor([[200., 180., -200.]])
    positive = torch.tensor([[True, True, False]])
    assert diag.gradient_norm(z, positive).item() == 0
    assert diag.positive_gradient_score(z, positive, torch.tensor([1])).item() == pytest.approx(1)
    assert diag.ideal_cosine(z, positive, torch.tensor([1])).isfinite().all()


def test_k_histogram():
    k = torch.tensor([[1, 1, 2], [3, 1, 2]])
    assert diag.k_histogram(k, 5).tolist() == [0, 3, 2, 1, 0]
    assert diag.k_histogram(k, 5, k > 1).tolist() == [0, 0, 2, 1, 0]


def test_summary():
    student, teacher, gt, _, _ = vectors()
    result = diag.fpl_diagnostics(student, teacher, gt, max_k=3)
    assert result['num_pixels'] == 5
    assert result['k_histogram'].tolist() == [0, 1, 2, 2, 0]
    assert result['pseudo_acc'].item() == pytest.approx(1 / 5)
    assert result['positive_acc'].item() == pytest.approx(3 / 5)
    for key in ('fpl', 'vanilla'):
        for name, values in (('score', VECTORS[f'r_{key}']), ('cosine', VECTORS[f'cos_{key}'])):
            assert result[f'case2_{name}_{key}'].item() == pytest.approx((values[1] + values[3]) / 2)
    assert result['case2_cosine_positive_fpl'] == 1
    assert result['case2_cosine_positive_vanilla'] == 0
    assert result['case1_k1_ratio'] == 1
    assert result['case3_ratio'].item() == pytest.approx(2 / 5)
    assert all(v.isfinite().all() for v in result.values())
    k_is_n = fuzzy_positive_assignment(teacher, max_k=3, k_rule='n').positive
    assert torch.allclose(result['gradient_norm_k_is_n'], fuzzy_positive_gradient(student, k_is_n).norm(dim=1).mean())
    assert result['gradient_norm_k_is_n'] != result['gradient_norm_fpl']


def test_summary_counts_valid_pixels_only():
    """On a map with ignored, invalid and out-of-range pixels: the numbers of the pixels that are left."""
    student, teacher, gt, _, _ = vectors()
    expected = diag.fpl_diagnostics(student, teacher, gt)
    image = torch.full((5, 8), 0., dtype=torch.float64)
    z, t = image.clone(), image.clone()
    z[:, :5], t[:, :5] = student.T, teacher.T
    z[:, 5:] = math.nan
    labels = torch.tensor([*VECTORS['gt'], 255, 7, 1])
    valid = torch.tensor([True] * 7 + [False])
    result = diag.fpl_diagnostics(z[None], t[None], labels[None], valid[None])
    assert result.keys() == expected.keys()
    for key, value in result.items():
        assert torch.equal(value, expected[key]) or torch.allclose(value, expected[key]), key


def test_no_pixel_of_a_case_is_nan_not_zero():
    student, teacher, _, _, _ = vectors()
    result = diag.fpl_diagnostics(student, teacher, teacher.argmax(1))
    assert result['case1_ratio'] == 1
    assert result['case2_score_fpl'].isnan()
