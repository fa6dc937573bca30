r"""Partial-label learning: each sample has a set of candidate labels, one of which is right.

The first half is the concrete form, ours, of RGD-PLL (Wei et al., 2026, of which only a summary is known); the second
half holds the baselines. ``candidates`` is bool, shape (N, C), True for the labels in the set; every set has one at
least. Logits are (N, C). Losses are those of samples, (N,), unless said otherwise.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def masked_log_softmax(scores: Tensor, candidates: Tensor) -> Tensor:
    """Log-softmax over the candidates; -inf elsewhere.

    Args:
        scores: Floating point, shape (N, C).
        candidates: Bool, shape (N, C).
    """
    return scores.masked_fill(~candidates, -math.inf).log_softmax(dim=1)


def candidate_probs(logits: Tensor, candidates: Tensor, temperature: float = 1.0) -> Tensor:
    r"""Softmax restricted to the candidates, :math:`\pi_{ic} \propto S_{ic} \exp(z_{ic} / T)`.

    Args:
        logits: Floating point, shape (N, C).
        candidates: Bool, shape (N, C).
        temperature: T > 0.

    Returns:
        Shape (N, C), rows sum to 1, 0 for what is no candidate.
    """
    return masked_log_softmax(logits / temperature, candidates).exp()


def candidate_entropy(probs: Tensor, candidates: Tensor) -> Tensor:
    r"""Entropy over the candidates in units of its largest value, :math:`-\sum_c \pi_c \log \pi_c / \log |S|`.

    Args:
        probs: Shape (N, C), 0 for what is no candidate.
        candidates: Bool, shape (N, C).

    Returns:
        Shape (N,), in [0, 1]; 0 for a single candidate.
    """
    sizes = candidates.sum(dim=1)
    entropy = torch.special.entr(probs).sum(dim=1)
    return torch.where(sizes > 1, entropy / sizes.clamp(min=2).to(probs.dtype).log(), 0.0).clamp(0, 1)


def candidate_reliability(probs: Tensor, candidates: Tensor, power: float = 1.0) -> Tensor:
    r""":math:`\alpha_i = (1 - H_i)^\kappa`: how sure a target is among its candidates.

    Args:
        probs: Shape (N, C), 0 for what is no candidate.
        candidates: Bool, shape (N, C).
        power: :math:`\kappa` >= 0.

    Returns:
        Shape (N,), in [0, 1].
    """
    return (1 - candidate_entropy(probs, candidates)) ** power


def soft_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    r""":math:`-\sum_c q_c \log p_c` with p the softmax over all classes: :math:`L_{pred}` and :math:`L_{soft}`.

    Args:
        logits: Shape (N, C).
        target: Shape (N, C), rows sum to 1; no gradient flows to it.
    """
    return -(target.detach() * logits.log_softmax(dim=1)).sum(dim=1)


def candidate_kl(target: Tensor, scores: Tensor, candidates: Tensor) -> Tensor:
    r""":math:`KL(\pi \| q)` with q the softmax of ``scores`` over the candidates: :math:`L_{rel}` before weighting.

    Args:
        target: :math:`\pi`, shape (N, C), 0 for what is no candidate; no gradient flows to it.
        scores: Of the estimator, shape (N, C); what is no candidate has no influence.
        candidates: Bool, shape (N, C).
    """
    target = target.detach()
    # Finite where nothing is weighted, for the gradient is 0 times that.
    log_q = masked_log_softmax(scores, candidates).masked_fill(~candidates, 0)
    return (torch.special.xlogy(target, target) - target * log_q).sum(dim=1)


def progressive_schedule(step: float, begin: float, ramp: float, largest: float = 1.0) -> float:
    r""":math:`\lambda_t`: 0 before ``begin``, then linear to ``largest`` over ``ramp``, then constant.

    Args:
        step: Present epoch or iteration.
        begin: :math:`T_w` >= 0.
        ramp: :math:`T_r` >= 0, in the same unit.
        largest: Value after the ramp.
    """
    if step < begin:
        return 0.0
    return largest if ramp == 0 else largest * min(1.0, (step - begin) / ramp)


def covering_rate(predictions: Tensor, candidates: Tensor) -> Tensor:
    """Share of the samples whose predicted class, of all C, is a candidate: the covering rate (Wang et al., ICLR 2025).

    Args:
        predictions: Int64, shape (N,).
        candidates: Bool, shape (N, C).

    Returns:
        Float64 scalar; NaN without samples.
    """
    return candidates.gather(1, predictions[:, None]).double().mean()


def accuracy_from_covering_rate(rate: Tensor, candidates: Tensor) -> Tensor:
    r"""The accuracy that a covering rate stands for if a false label enters every set with one probability q.

    A right prediction is covered then, and a wrong one with probability q, so that :math:`rate = acc + (1 - acc)\,q`;
    q is estimated by the sets, :math:`q = \text{mean}_i (|S_i| - 1) / (C - 1)`. Where sets hold what looks alike, wrong
    predictions are covered more often, and this is too high. It may be below 0.

    Args:
        rate: Of :func:`covering_rate`.
        candidates: Bool, shape (N, C), with the true label in every set.

    Returns:
        Float64 scalar; NaN if every label is a candidate everywhere.
    """
    sizes = candidates.sum(dim=1).double()
    q = (sizes - 1).mean() / (candidates.shape[1] - 1)
    return (rate - q) / (1 - q) if q < 1 else torch.full_like(rate, math.nan)


def uniform_targets(candidates: Tensor) -> Tensor:
    """Every candidate alike: the targets with which running targets begin.

    Args:
        candidates: Bool, shape (N, C).

    Returns:
        Float32, shape (N, C).
    """
    return candidates / candidates.sum(dim=1, keepdim=True)


def classifier_consistent_loss(logits: Tensor, candidates: Tensor) -> Tensor:
    r"""CC (Feng et al., NeurIPS 2020): :math:`-\log \sum_{c \in S} p_c`.

    Args:
        logits: Shape (N, C).
        candidates: Bool, shape (N, C).
    """
    inside = logits.masked_fill(~candidates, -math.inf).logsumexp(dim=1)
    return logits.logsumexp(dim=1) - inside


def leveraged_weights(logits: Tensor, candidates: Tensor) -> Tensor:
    """Weights of LWS: the softmax, normalized among the candidates and among the other labels apart.

    Args:
        logits: Shape (N, C).
        candidates: Bool, shape (N, C).

    Returns:
        Shape (N, C); each row sums to 1 over the candidates, and to 1 over the others where there are any.
    """
    inside = candidate_probs(logits, candidates)
    outside = masked_log_softmax(logits, ~candidates).exp()
    return torch.where(candidates, inside, outside)


def leveraged_weighted_loss(
    logits: Tensor, candidates: Tensor, weights: Tensor, beta: float = 1.0, kind: str = 'sigmoid'
) -> Tensor:
    r"""LWS (Wen et al., ICML 2021): :math:`\sum_{c \in S} w_c \psi(z_c) + \beta \sum_{c \notin S} w_c \psi(-z_c)`.

    Args:
        logits: Shape (N, C).
        candidates: Bool, shape (N, C).
        weights: Shape (N, C); no gradient flows to them.
        beta: Weight of the labels outside >= 0; 1 or 2 in the paper.
        kind: ``'sigmoid'``: :math:`\psi(z) = 1 / (1 + e^z)`; ``'cross_entropy'``: :math:`-\log p_c` inside and
            :math:`-\log(1 - p_c)` outside.

    Raises:
        ValueError: ``kind`` is neither.
    """
    if kind == 'sigmoid':
        inside, outside = torch.sigmoid(-logits), torch.sigmoid(logits)
    elif kind == 'cross_entropy':
        log_p = logits.log_softmax(dim=1)
        inside, outside = -log_p, -log_one_minus_exp(log_p)
    else:
        raise ValueError(f"leveraged_weighted_loss: `kind` must be 'sigmoid' or 'cross_entropy', got {kind!r}")
    return (weights.detach() * torch.where(candidates, inside, beta * outside)).sum(dim=1)


def class_activation_values(logits: Tensor) -> Tensor:
    r"""CAVL (Zhang et al., ICLR 2022): :math:`|z_c - 1| z_c`.

    Args:
        logits: Shape (N, C).
    """
    return (logits - 1).abs() * logits


def class_activation_labels(logits: Tensor, candidates: Tensor) -> Tensor:
    """The candidate with the largest class activation value.

    Args:
        logits: Shape (N, C).
        candidates: Bool, shape (N, C).

    Returns:
        Int64, shape (N,).
    """
    # Squares of large float32 logits overflow, and an infinite value is no different from that of a masked label.
    return class_activation_values(logits.double()).masked_fill(~candidates, -math.inf).argmax(dim=1)


def complementary_loss(logits: Tensor, candidates: Tensor) -> Tensor:
    r"""Supervised term of CRDPLL (Wu et al., ICML 2022): :math:`-\sum_{c \notin S} \log(1 - p_c)`.

    Args:
        logits: Shape (N, C).
        candidates: Bool, shape (N, C).
    """
    terms = -log_one_minus_exp(logits.log_softmax(dim=1))
    return terms.masked_fill(candidates, 0).sum(dim=1)


def geometric_mean_targets(log_probs: Tensor, candidates: Tensor) -> Tensor:
    r"""Targets of CRDPLL: :math:`W \propto S \prod_v p_v^{1/V}` over V views.

    Args:
        log_probs: Log-softmax of the views, shape (V, N, C).
        candidates: Bool, shape (N, C).

    Returns:
        Shape (N, C), rows sum to 1.
    """
    return candidate_probs(log_probs.mean(dim=0), candidates)


def moved_prototypes(prototypes: Tensor, embeddings: Tensor, labels: Tensor, momentum: float = 0.01) -> Tensor:
    r"""PiCO (Wang et al., ICLR 2022): :math:`\mu_c \leftarrow norm((1 - m) \mu_c + m q)`, one sample after the other.

    Args:
        prototypes: :math:`\mu`, unit vectors (or 0 at the start), shape (C, D).
        embeddings: q, unit vectors, shape (N, D).
        labels: The class whose prototype each sample moves, int64, shape (N,).
        momentum: m, weight of the sample: a paper's 0.99 is 0.01.

    Returns:
        Shape (C, D).
    """
    moved = prototypes.clone()
    for embedding, label in zip(embeddings, labels.tolist(), strict=True):
        moved[label] = F.normalize((1 - momentum) * moved[label] + momentum * embedding, dim=0)
    return moved


def prototype_targets(
    targets: Tensor, embeddings: Tensor, prototypes: Tensor, candidates: Tensor, keep: float
) -> Tensor:
    r"""PiCO: :math:`W \leftarrow \phi W + (1 - \phi)\, onehot(\arg\max_{c \in S} q \cdot \mu_c)`.

    Args:
        targets: W, shape (N, C).
        embeddings: q, shape (N, D).
        prototypes: :math:`\mu`, shape (C, D).
        candidates: Bool, shape (N, C).
        keep: :math:`\phi`, in [0, 1].
    """
    nearest = (embeddings @ prototypes.T).masked_fill(~candidates, -math.inf).argmax(dim=1)
    return keep * targets + (1 - keep) * F.one_hot(nearest, targets.shape[1]).to(targets.dtype)


def supervised_contrastive_loss(
    anchors: Tensor, contrasts: Tensor, is_positive: Tensor, temperature: float = 0.07
) -> Tensor:
    r"""PiCO: supervised contrast of an anchor with its positives P among all that is not itself.

    .. math:: -\frac{1}{|P|} \sum_{p \in P} \log \frac{\exp(q \cdot k_p / \tau)}{\sum_a \exp(q \cdot k_a / \tau)}

    Args:
        anchors: q, unit vectors, shape (N, D); row i is row i of ``contrasts``, which is left out of its sum.
        contrasts: k: the anchors, their other views, and the queue, shape (M, D), M >= N.
        is_positive: Bool, shape (N, M); of the anchor itself it has no effect.
        temperature: :math:`\tau` > 0.

    Returns:
        Shape (N,); 0 for an anchor without positives.
    """
    logits = anchors @ contrasts.T / temperature
    own = torch.eye(len(anchors), len(contrasts), dtype=torch.bool, device=anchors.device)
    log_probs = logits.masked_fill(own, -math.inf).log_softmax(dim=1).masked_fill(own, 0)
    positive = is_positive & ~own
    return -(log_probs * positive).sum(dim=1) / positive.sum(dim=1).clamp(min=1)


def info_nce_loss(anchors: Tensor, keys: Tensor, queue: Tensor, temperature: float = 0.07) -> Tensor:
    r"""PiCO's warm-up: contrast of an anchor with its own key among the queue.

    .. math:: -\log \frac{\exp(q \cdot k / \tau)}{\exp(q \cdot k / \tau) + \sum_j \exp(q \cdot k_j / \tau)}

    Args:
        anchors: q, unit vectors, shape (N, D).
        keys: k, the other view of each, shape (N, D).
        queue: :math:`k_j`, shape (M, D), M >= 0.
        temperature: :math:`\tau` > 0.

    Returns:
        Shape (N,); 0 with an empty queue.
    """
    logits = torch.cat([(anchors * keys).sum(dim=1, keepdim=True), anchors @ queue.T], dim=1) / temperature
    return -logits.log_softmax(dim=1)[:, 0]


def log_one_minus_exp(values: Tensor) -> Tensor:
    r""":math:`\log(1 - e^v)` for v <= 0, with the digits that 1 - e^v loses; the smallest probability left is 1e-7.

    Args:
        values: Log-probabilities, any shape.
    """
    values = values.clamp(max=math.log1p(-1e-7))
    near = values > -math.log(2)
    return torch.where(
        near, torch.log(-torch.expm1(values)), torch.log1p(-torch.exp(values.masked_fill(near, -1.0)))
    )
