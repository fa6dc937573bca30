"""Partial-label maths against the worked vectors, plain loops and finite differences."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from mmssl.functional import partial_label as pll

F64 = torch.float64
CANDIDATES = torch.tensor([[1, 1, 0, 1, 0], [0, 1, 0, 0, 0], [1, 1, 1, 1, 1]], dtype=torch.bool)
TEACHER = torch.tensor([[2, 1, 5, 0, -1], [0.3, -2, 1, 0.2, 0], [0.1] * 5], dtype=F64)
STUDENT = torch.tensor([[1, 0.5, 1.5, 0.2, -0.3], [0, 0.4, 0.3, -0.2, 0.1], [0.5, -0.1, 0, 0.2, 0.3]], dtype=F64)
SCORES = torch.tensor([[0.8, 0.1, 9, -0.5, 9], [9, 0, 9, 9, 9], [0.4, 0.2, 0, -0.2, 0.1]], dtype=F64)
# One sample with candidates 0, 2, 3.
ONE, ONE_SET = torch.tensor([[1, 0.2, -0.5, 0.1]], dtype=F64), torch.tensor([[True, False, True, True]])


def close(found: Tensor, wanted: list, atol: float = 1e-8) -> None:
    torch.testing.assert_close(found, torch.tensor(wanted, dtype=found.dtype), atol=atol, rtol=0)


def test_worked_vectors_of_targets() -> None:
    pi = pll.candidate_probs(TEACHER, CANDIDATES)
    close(pi, [[0.6652409558, 0.2447284711, 0, 0.09003057317, 0], [0, 1, 0, 0, 0], [0.2] * 5])
    close(pll.candidate_entropy(pi, CANDIDATES), [0.7576791107, 0, 1])
    close(pll.candidate_reliability(pi, CANDIDATES), [0.2423208893, 1, 0])
    close(pll.masked_log_softmax(SCORES, CANDIDATES).exp(), [
        [0.5652537086, 0.2806966846, 0, 0.1540496067, 0], [0, 1, 0, 0, 0],
        [0.2646426335, 0.2166710626, 0.1773952623, 0.1452389567, 0.1960520849]])


def test_worked_vectors_of_losses_and_gradients() -> None:
    student, scores = STUDENT.clone().requires_grad_(), SCORES.clone().requires_grad_()
    pi = pll.candidate_probs(TEACHER, CANDIDATES)
    alpha = pll.candidate_reliability(pi, CANDIDATES)
    pred = pll.soft_cross_entropy(student, pi).mean()
    rel = (alpha * pll.candidate_kl(pi, scores, CANDIDATES)).mean()
    soft = (alpha * pll.soft_cross_entropy(student, pll.candidate_probs(scores, CANDIDATES))).mean()
    close(torch.stack([pred, rel, soft]).detach(), [1.51973361936, 0.00213522665522, 0.583439040319])
    close(torch.autograd.grad(pred, student, retain_graph=True)[0], [
        [-0.1379340889, -0.03074106572, 0.1381841049, 0.007649370826, 0.02284167891],
        [0.0578143108, -0.2470845166, 0.07804115664, 0.04733435422, 0.06389469495],
        [0.0230622942, -0.01742236885, -0.01224330084, -0.0001938175373, 0.006797193033]])
    gradients = torch.autograd.grad(soft, [student, scores], allow_unused=True)
    close(gradients[0], [
        [-0.02534797822, -0.01035448555, 0.0334848952, -0.003317447375, 0.005535015948],
        [0.0578143108, -0.2470845166, 0.07804115664, 0.04733435422, 0.06389469495], [0] * 5])
    assert gradients[1] is None, 'the soft targets are detached'
    close(torch.autograd.grad(rel, scores)[0], [
        [-0.008076332883, 0.002905283167, 0, 0.005171049716, 0], [0] * 5, [0] * 5])


def test_worked_vectors_of_the_baselines() -> None:
    close(pll.classifier_consistent_loss(ONE, ONE_SET), [0.243505015619])
    uniform = pll.uniform_targets(ONE_SET)
    close(pll.soft_cross_entropy(ONE, uniform), [1.5319008539], atol=1e-7)
    close(pll.candidate_probs(ONE, ONE_SET), [[0.6136099347, 0, 0.136914883, 0.2494751823]])
    values = pll.class_activation_values(ONE)
    close(values * ONE_SET, [[0, 0, -0.75, 0.09]])
    assert pll.class_activation_labels(ONE, ONE_SET).tolist() == [3]
    close(pll.complementary_loss(ONE, ONE_SET), [0.243505015619], atol=1e-6)


def test_leveraged_weights_are_normalized_on_each_side() -> None:
    weights = pll.leveraged_weights(ONE, ONE_SET)
    close(weights, [[0.6136099347, 1.0, 0.136914883, 0.2494751823]])
    close(pll.leveraged_weighted_loss(ONE, ONE_SET, weights), [0.918588975628])
    everything = pll.leveraged_weights(ONE, torch.ones(1, 4, dtype=torch.bool))
    assert torch.isfinite(everything).all() and everything.sum() == pytest.approx(1)


def test_geometric_mean_of_two_views() -> None:
    generator = torch.Generator().manual_seed(0)
    views = torch.randn(2, 3, 5, generator=generator, dtype=F64).softmax(dim=2)
    found = pll.geometric_mean_targets(views.log(), CANDIDATES)
    for row in range(3):
        plain = [math.sqrt(float(views[0, row, c]) * float(views[1, row, c])) * int(CANDIDATES[row, c])
                 for c in range(5)]
        close(found[row], [value / sum(plain) for value in plain])


@pytest.mark.parametrize('function', [
    lambda z: pll.soft_cross_entropy(z, pll.candidate_probs(TEACHER, CANDIDATES)),
    lambda z: pll.candidate_kl(pll.candidate_probs(TEACHER, CANDIDATES), z, CANDIDATES),
    lambda z: pll.classifier_consistent_loss(z, CANDIDATES),
    lambda z: pll.complementary_loss(z, CANDIDATES),
    lambda z: pll.leveraged_weighted_loss(z, CANDIDATES, torch.full((3, 5), 0.2), beta=2.0),
    lambda z: pll.leveraged_weighted_loss(z, CANDIDATES, torch.full((3, 5), 0.2), kind='cross_entropy'),
    lambda z: pll.supervised_contrastive_loss(z, torch.cat([z, 0.3 * z.flip(1)]), torch.ones(3, 6, dtype=torch.bool)),
    lambda z: pll.info_nce_loss(z, 0.3 * z.flip(1), TEACHER[:2], 0.7),
])
def test_gradients_by_finite_differences(function: Callable[[Tensor], Tensor]) -> None:
    assert torch.autograd.gradcheck(function, STUDENT.clone().requires_grad_())


@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16])
def test_extreme_logits_give_finite_losses_and_gradients(dtype: torch.dtype) -> None:
    logits = torch.tensor([[1e4, -1e4, 0, 50, -50], [-1e4, 1e4, 1e4, 0, 0], [1e4, 1e4, -1e4, 0, 1]], dtype=dtype)
    logits.requires_grad_()
    z = logits.float()
    losses = [pll.classifier_consistent_loss(z, CANDIDATES), pll.complementary_loss(z, CANDIDATES),
              pll.leveraged_weighted_loss(z, CANDIDATES, pll.leveraged_weights(z, CANDIDATES), kind='cross_entropy'),
              pll.candidate_kl(pll.candidate_probs(z.flip(1), CANDIDATES), z, CANDIDATES),
              pll.soft_cross_entropy(z, pll.candidate_probs(z.flip(1), CANDIDATES))]
    for loss in losses:
        assert torch.isfinite(loss).all()
        (gradient,) = torch.autograd.grad(loss.sum(), logits, retain_graph=True)
        assert torch.isfinite(gradient).all()


def test_entropy_lies_in_its_range() -> None:
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        candidates = torch.rand(50, 7, generator=generator) < 0.4
        candidates[torch.arange(50), torch.randint(0, 7, (50,), generator=generator)] = True
        probs = pll.candidate_probs(10 * torch.randn(50, 7, generator=generator), candidates)
        entropy = pll.candidate_entropy(probs, candidates)
        assert (entropy >= 0).all() and (entropy <= 1).all() and (probs[~candidates] == 0).all()
        assert (entropy[candidates.sum(1) == 1] == 0).all()


def test_schedule() -> None:
    values = [pll.progressive_schedule(epoch, 10, 40, 0.5) for epoch in (0, 9, 10, 30, 50, 100)]
    assert values == [0, 0, 0, 0.25, 0.5, 0.5]
    assert pll.progressive_schedule(3, 3, 0) == 1


def test_prototypes_move_one_sample_after_the_other() -> None:
    start = torch.nn.functional.normalize(torch.randn(3, 4, dtype=F64), dim=1)
    samples = torch.nn.functional.normalize(torch.randn(5, 4, dtype=F64), dim=1)
    labels = torch.tensor([1, 1, 0, 1, 0])
    plain = start.clone()
    for sample, label in zip(samples, labels, strict=True):
        mixed = 0.9 * plain[label] + 0.1 * sample
        plain[label] = mixed / mixed.norm()
    torch.testing.assert_close(pll.moved_prototypes(start, samples, labels, 0.1), plain)
    targets = pll.prototype_targets(torch.full((3, 5), 0.2, dtype=F64), samples[:3], torch.randn(5, 4, dtype=F64),
                                    CANDIDATES, keep=0.75)
    assert targets.sum(1).tolist() == pytest.approx([1, 1, 1])
    assert float(targets[1, 1]) == pytest.approx(0.75 * 0.2 + 0.25)


def test_contrastive_loss_against_loops() -> None:
    anchors = torch.nn.functional.normalize(torch.randn(3, 4, dtype=F64), dim=1)
    contrasts = torch.cat([anchors, torch.nn.functional.normalize(torch.randn(5, 4, dtype=F64), dim=1)])
    positive = torch.rand(3, 8) < 0.5
    positive[2] = False
    found = pll.supervised_contrastive_loss(anchors, contrasts, positive, 0.07)
    for i in range(3):
        others = [j for j in range(8) if j != i]
        total = sum(math.exp(float(anchors[i] @ contrasts[j]) / 0.07) for j in others)
        terms = [math.log(math.exp(float(anchors[i] @ contrasts[j]) / 0.07) / total) for j in others if positive[i, j]]
        assert float(found[i]) == pytest.approx(-sum(terms) / len(terms) if terms else 0)


def test_contrast_with_the_own_key() -> None:
    q, k, queue = (torch.nn.functional.normalize(torch.randn(n, 4, dtype=F64), dim=1) for n in (3, 3, 5))
    found = pll.info_nce_loss(q, k, queue, 0.2)
    for i in range(3):
        terms = [math.exp(float(q[i] @ other) / 0.2) for other in (k[i], *queue)]
        assert float(found[i]) == pytest.approx(-math.log(terms[0] / sum(terms)))
    assert (pll.info_nce_loss(q, k, queue[:0]) == 0).all()


def test_log_one_minus_exp() -> None:
    for value in (-1e-6, -0.1, -0.6931, -0.7, -5.0, -30.0):
        found = float(pll.log_one_minus_exp(torch.tensor(value, dtype=F64)))
        assert found == pytest.approx(math.log(-math.expm1(value)))
    with pytest.raises(ValueError, match='`kind` must be'):
        pll.leveraged_weighted_loss(ONE, ONE_SET, ONE, kind='hinge')
