"""Which pseudo labels count, and how much: the thresholds of the FixMatch family, as functions of probabilities.

Nothing here has a gradient but the fairness loss. Statistics that a method averages over iterations come in and go out
as tensors; whoever calls keeps them, and reduces batch means over processes before.
"""

import math

import torch
from torch import Tensor

from mmssl.functional.fpl import compute_dtype


def class_shares(labels: Tensor, num_classes: int, weight: Tensor | None = None) -> Tensor:
    """How often each class occurs.

    Args:
        labels: int64, (N,).
        num_classes: C.
        weight: What each label counts, (N,); None: 1.

    Returns:
        Sums, float32 or ``weight``'s dtype, (C,).
    """
    # A comparison with every class: a histogram on the GPU would wait for it, or not be deterministic.
    hits = labels[:, None] == torch.arange(num_classes, device=labels.device)
    if weight is None:
        return hits.sum(dim=0).float()
    return torch.where(hits, weight[:, None], 0).sum(dim=0)


def normalized(values: Tensor) -> Tensor:
    """``values`` >= 0, (C,), divided by their sum; zeros stay zeros."""
    return values / values.sum().clamp(min=torch.finfo(values.dtype).tiny)


def ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    """``numerator / denominator``, 0 where the denominator is 0 (or so small that its inverse overflows)."""
    tiny = torch.finfo(denominator.dtype).tiny
    return torch.where(denominator > tiny, numerator / denominator.clamp(min=tiny), 0)


# --- FreeMatch -------------------------------------------------------------------------------------------------------


def self_adaptive_thresholds(global_threshold: Tensor, model_prob: Tensor) -> Tensor:
    r"""Thresholds of the classes (FreeMatch, Wang et al., ICLR 2023).

    .. math:: \tau(c) = \frac{\tilde p(c)}{\max_{c'} \tilde p(c')} \tau

    Args:
        global_threshold: :math:`\tau`, scalar: average of the largest probability.
        model_prob: :math:`\tilde p`, (C,): average of the probabilities.

    Returns:
        (C,).
    """
    return global_threshold * model_prob / model_prob.max()


def fairness_loss(
    prob_sum: Tensor, label_count: Tensor, model_prob: Tensor, label_hist: Tensor, eps: float = 1e-12
) -> Tensor:
    r"""Self-adaptive fairness (FreeMatch): a *negative* cross entropy, to be added with a positive weight.

    .. math:: A = \mathrm{norm}(\tilde p / \tilde h), \quad
              B = \mathrm{norm}\Big(\frac{\sum_b P_b}{\sum_b \mathrm{onehot}(\arg\max P_b)}\Big), \quad
              L_f = \sum_c A_c \log (B_c + \epsilon)

    with sums over the selected samples b and 1 / 0 = 0. The gradient flows through :math:`\sum_b P_b` alone. Both
    ratios are normalized, so sums stand where the paper has means.

    Args:
        prob_sum: :math:`\sum_b P_b`, (C,): summed strong probabilities of the selected samples; has the gradient.
        label_count: Arg-max histogram of the same probabilities, (C,).
        model_prob: :math:`\tilde p`, (C,): average of the weak probabilities.
        label_hist: :math:`\tilde h`, (C,): average histogram of the pseudo labels.
        eps: :math:`\epsilon`.

    Returns:
        Scalar <= 0, or within rounding of it; 0, attached to the graph, if no sample is selected.
    """
    target = normalized(ratio(model_prob, label_hist)).detach()
    balance = normalized(ratio(prob_sum, label_count))
    loss = (target * (balance + eps).log()).sum()
    # With nothing selected B is 0 everywhere; what is summed above is then a constant that says nothing.
    return torch.where(label_count.sum() > 0, loss, 0 * prob_sum.sum())


# --- FlexMatch -------------------------------------------------------------------------------------------------------


def flexmatch_status(counts: Tensor, num_unused: Tensor, warmup: bool = True) -> Tensor:
    r"""Learning status of the classes (FlexMatch, Zhang et al., NeurIPS 2021).

    .. math:: \beta(c) = \frac{\sigma(c)}{\max\{\max_{c'} \sigma(c'),\ N - \sum_{c'} \sigma(c')\}}

    Args:
        counts: :math:`\sigma`, (C,): samples whose last confident prediction is class c.
        num_unused: Samples without a confident prediction so far, scalar.
        warmup: Whether these are in the denominator.

    Returns:
        In [0, 1], float32, (C,); 0 while there is no confident prediction at all.
    """
    most = counts.max()
    if warmup:
        most = torch.maximum(most, num_unused)
    return counts.float() / most.clamp(min=1).float()


def flexmatch_thresholds(status: Tensor, threshold: float) -> Tensor:
    r"""Thresholds of the classes, with the convex mapping :math:`x / (2 - x)` (FlexMatch).

    Args:
        status: :math:`\beta`, (C,).
        threshold: That of a class which is learned best, in [0, 1].

    Returns:
        (C,).
    """
    return threshold * status / (2 - status)


# --- SoftMatch -------------------------------------------------------------------------------------------------------


def softmatch_weight(max_prob: Tensor, mean: Tensor, variance: Tensor, n_sigma: float = 2.0) -> Tensor:
    r"""Truncated Gaussian weight (SoftMatch, Chen et al., ICLR 2023).

    .. math:: \lambda(p) = \exp\Big(-\frac{\min(p - \mu, 0)^2}{2 \sigma^2 / n^2}\Big)

    Args:
        max_prob: Confidence p, (N,).
        mean: :math:`\mu`, scalar.
        variance: :math:`\sigma^2`, scalar.
        n_sigma: n.

    Returns:
        In [0, 1], (N,).
    """
    below = (max_prob - mean).clamp(max=0)
    scale = (2 * variance / n_sigma**2).clamp(min=torch.finfo(max_prob.dtype).eps ** 2)
    return torch.exp(-(below**2) / scale)


# --- Dash ------------------------------------------------------------------------------------------------------------


def dash_threshold(
    start: Tensor, step: Tensor, base: float = 1.0001, gamma: float = 1.27, minimum: float = 0.05
) -> Tensor:
    r"""Largest loss of a sample that counts (Dash, Xu et al., ICML 2021).

    .. math:: \rho_k = \max(C \gamma^{-k} \hat\rho,\ \rho_{min})

    Args:
        start: :math:`\hat\rho`, scalar: loss of labeled samples when the unsupervised loss begins.
        step: k >= 0, scalar.
        base: C > 1.
        gamma: > 1.
        minimum: :math:`\rho_{min}`.

    Returns:
        Scalar.
    """
    return (base * gamma ** -step.to(start.dtype) * start).clamp(min=minimum)


def sharpened_logits(logits: Tensor, temperature: float) -> Tensor:
    """Logits, (N, C), whose softmax is that of ``logits / temperature``; finite for any finite logits."""
    if temperature == 1:
        return logits
    shifted = (logits - logits.amax(dim=1, keepdim=True)) / temperature
    return shifted.clamp_min(torch.finfo(logits.dtype).min)


def one_hot_logits(logits: Tensor) -> Tensor:
    """Logits, (N, C), whose softmax is exactly the one-hot vector of the arg-max of ``logits``, in any float dtype."""
    # exp(-1e4) is 0 in every dtype, and the largest fp16 number is 6.5e4.
    classes = torch.arange(logits.shape[1], device=logits.device)
    return torch.where(classes == logits.argmax(dim=1, keepdim=True), 0.0, -1e4).to(logits.dtype)


def distribution_cross_entropy(logits: Tensor, target_logits: Tensor) -> Tensor:
    """``H(softmax(target_logits), softmax(logits))`` of each sample; both (N, C), the result (N,), at least float32."""
    dtype = compute_dtype(logits, target_logits)
    return -(target_logits.to(dtype).softmax(dim=1) * logits.to(dtype).log_softmax(dim=1)).sum(dim=1)


# --- AdaMatch --------------------------------------------------------------------------------------------------------


def relative_threshold(labeled_max_prob_mean: Tensor, threshold: float) -> Tensor:
    """Threshold relative to the confidence on labeled images (AdaMatch, Berthelot et al., ICLR 2022).

    Args:
        labeled_max_prob_mean: Mean largest probability of the labeled images of the batch, scalar.
        threshold: Share of it, in [0, 1].

    Returns:
        Scalar.
    """
    return threshold * labeled_max_prob_mean


# --- distribution alignment ------------------------------------------------------------------------------------------


def align_distribution(probs: Tensor, target: Tensor, model_prob: Tensor, eps: float = 1e-6) -> Tensor:
    r"""Distribution alignment (ReMixMatch, Berthelot et al., ICLR 2020).

    .. math:: \hat q = \mathrm{norm}\Big(q \cdot \frac{t + \epsilon}{\tilde p + \epsilon}\Big)

    Args:
        probs: q, (N, C).
        target: t, (C,): the distribution of the classes as it should be.
        model_prob: :math:`\tilde p`, (C,): average of the model's probabilities.
        eps: :math:`\epsilon`.

    Returns:
        Rows that sum to 1, (N, C).
    """
    aligned = probs * ((target + eps) / (model_prob + eps))
    return aligned / aligned.sum(dim=1, keepdim=True)


# --- training signal annealing ---------------------------------------------------------------------------------------


def training_signal_threshold(progress: float, num_classes: int, schedule: str) -> float:
    r"""Largest probability of the true class at which a labeled sample still counts (UDA, Xie et al., NeurIPS 2020).

    .. math:: \eta_t = \alpha_t (1 - 1 / C) + 1 / C

    with :math:`\alpha_t` = t (``'linear'``), :math:`e^{5 (t - 1)}` (``'exp'``) or :math:`1 - e^{-5 t}` (``'log'``).

    Args:
        progress: t, share of the training that is done, in [0, 1].
        num_classes: C.
        schedule: ``'linear'``, ``'exp'`` or ``'log'``.

    Returns:
        In [1 / C, 1].
    """
    alpha = {
        'linear': lambda t: t,
        'exp': lambda t: math.exp(5 * (t - 1)),
        'log': lambda t: 1 - math.exp(-5 * t),
    }[schedule](min(max(progress, 0.0), 1.0))
    return alpha * (1 - 1 / num_classes) + 1 / num_classes
