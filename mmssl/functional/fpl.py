"""Fuzzy positive learning: the equations of the paper, written as they are printed, on plain tensors.

Fuzzy Positive Learning for Semi-supervised Semantic Segmentation (FPL). ``z`` are the student's logits and ``p`` the
teacher's softmax at the same pixels, both (N, C, *); ``Y`` is the set of the K fuzzy positive classes of a pixel:

* Alg. 1 (K and Y): :func:`fuzzy_positive_assignment`
* Eq. 2 (vanilla loss, the case K = 1): :func:`hard_pseudo_label_loss`
* Eq. 7 (loss): :func:`fuzzy_positive_loss`; Eq. 8 (its gradient): :func:`fuzzy_positive_gradient`
* Eq. 10-12 (adaptive pixel weight): :func:`fuzzy_positive_weight`
* Appendix (what FPL is compared with): :func:`negative_learning_loss`, :func:`soft_pseudo_label_loss`

These are the definitions, made to be read and to be called for diagnostics. Training goes through
:func:`mmssl.functional.fpl_fused.fpl_loss`, which computes the same numbers in one pass over the pixels.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

K_RULES = ('n-1', 'n', 'ratio')
WEIGHT_MODES = ('concave', 'linear', 'convex', 'convex_ael', 'none')
WEIGHT_BOUNDS = ('positive_mean', 'top_k_plus_1')
# Losses are cut here, so that the mean over any number of pixels is finite for every finite logit.
MAX_PIXEL_LOSS = 1e30


class FuzzyPositives(NamedTuple):
    """What Alg. 1 assigns to each pixel, and the teacher's probabilities around the border of Y.

    Attributes:
        positive: Y as a mask, bool, (N, C, *); exactly ``k`` classes are True.
        k: Number of positives, int64, (N, *), in [1, C - 1].
        positive_prob: Summed teacher probability of Y, (N, *), in (0, 1].
        negative_prob: Largest teacher probability outside Y, (N, *), in [0, 1/2].
    """

    positive: Tensor
    k: Tensor
    positive_prob: Tensor
    negative_prob: Tensor


def compute_dtype(*tensors: Tensor) -> torch.dtype:
    """Float64 if one of ``tensors`` is float64, else float32: half precision is never summed over classes."""
    return torch.float64 if any(tensor.dtype == torch.float64 for tensor in tensors) else torch.float32


def check_logits(where: str, logits: Tensor, weight: Tensor | None = None, valid: Tensor | None = None) -> None:
    """Shapes and dtypes that every loss on logits needs.

    Args:
        where: Who asks, the start of the message.
        logits: (N, C, *).
        weight: Factor of each pixel, or None.
        valid: Mask of the pixels that count, or None.

    Raises:
        ValueError: Something does not fit; says what was found and what is needed.
    """
    shape = tuple(logits.shape)
    if logits.dim() < 2 or shape[1] < 2:
        raise ValueError(f'{where}: `logits` must be (N, C, *) with at least 2 classes, got shape {shape}')
    if not logits.is_floating_point():
        raise ValueError(f'{where}: `logits` must be floating point scores before softmax, got {logits.dtype}')
    pixels = shape[:1] + shape[2:]
    for name, tensor in (('weight', weight), ('valid', valid)):
        if tensor is not None and tuple(tensor.shape) != pixels:
            raise ValueError(f'{where}: `{name}` must have the shape {pixels} of `logits` {shape} without its classes, '
                             f'got {tuple(tensor.shape)}')
    if valid is not None and valid.dtype != torch.bool:
        raise ValueError(f'{where}: `valid` must be a bool mask, got {valid.dtype}')


def check_pixel_inputs(where: str, logits: Tensor, target_logits: Tensor, weight: Tensor | None,
                       valid: Tensor | None) -> None:
    """Shapes and dtypes that every loss between a student's and a teacher's logits needs.

    Args:
        where: Who asks, the start of the message.
        logits: Student logits, (N, C, *).
        target_logits: Teacher logits.
        weight: Factor of each pixel, or None.
        valid: Mask of the pixels that count, or None.

    Raises:
        ValueError: Something does not fit; says what was found and what is needed.
    """
    check_logits(where, logits, weight, valid)
    if target_logits.shape != logits.shape:
        raise ValueError(f'{where}: `target_logits` must have the shape of `logits` {tuple(logits.shape)}, got '
                         f'{tuple(target_logits.shape)}')
    if not target_logits.is_floating_point():
        raise ValueError(f'{where}: `target_logits` must be floating point scores before softmax, got '
                         f'{target_logits.dtype}')


def mean_denominator(logits: Tensor, valid: Tensor | None, reduction: str, avg_factor: float | Tensor | None,
                     dtype: torch.dtype) -> Tensor | None:
    """What a summed pixel loss is divided by.

    Args:
        logits: Student logits, (N, C, *).
        valid: Pixels that count, bool, (N, *), or None for all.
        reduction: ``'mean'``, ``'sum'`` or ``'none'``.
        avg_factor: Denominator of ``'mean'`` in place of the number of valid pixels.
        dtype: Of the result.

    Returns:
        A scalar > 0, or None for ``'none'``.

    Raises:
        ValueError: Unknown ``reduction``, or ``avg_factor`` with ``'sum'``.
    """
    if reduction not in ('mean', 'sum', 'none'):
        raise ValueError(f"`reduction` must be 'mean', 'sum' or 'none', got {reduction!r}")
    if reduction == 'none':
        return None
    if reduction == 'sum':
        if avg_factor is not None:
            raise ValueError("`avg_factor` can not be used with `reduction='sum'`")
        return torch.ones((), dtype=dtype, device=logits.device)
    if avg_factor is not None:
        return torch.as_tensor(avg_factor, dtype=dtype, device=logits.device).clamp(min=torch.finfo(dtype).eps)
    count = logits.numel() // logits.shape[1] if valid is None else valid.sum()
    return torch.as_tensor(count, dtype=dtype, device=logits.device).clamp(min=1)


def k_from_n(num_classes: int, max_k: int | None, k_rule: str, k_ratio: float) -> list[int]:
    """K for each n, the number of classes whose summed probability first reaches T (Alg. 1 and appendix).

    Args:
        num_classes: C, at least 2.
        max_k: Largest K; None for no cap but C - 1, which leaves one negative class.
        k_rule: ``'n-1'``: K = max(n - 1, 1). ``'n'``: K = n. ``'ratio'``: K = max(floor(k_ratio * n), 1).
        k_ratio: The alpha of the rule ``'ratio'``, in (0, 1].

    Returns:
        A list of C values; entry i is the K of n = i + 1.
    """
    cap = num_classes - 1 if max_k is None else min(max_k, num_classes - 1)
    # The 1e-9 keeps 0.29 * 100 = 28.999... from losing a class to binary rounding.
    rules = {'n-1': lambda n: n - 1, 'n': lambda n: n, 'ratio': lambda n: int(k_ratio * n + 1e-9)}
    return [min(max(rules[k_rule](n), 1), cap) for n in range(1, num_classes + 1)]


def fuzzy_positive_assignment(target_logits: Tensor,
                              cum_prob: float = 0.9,
                              max_k: int | None = None,
                              k_rule: str = 'n-1',
                              k_ratio: float = 0.5) -> FuzzyPositives:
    """Alg. 1: the K most probable classes of the teacher, K growing with its uncertainty.

    With the classes sorted by probability, n is the smallest count whose summed probability reaches T = ``cum_prob``,
    and K = max(n - 1, 1). Classes of equal probability are taken in class order.

    Args:
        target_logits: Teacher logits, float, (N, C, *), C >= 2. No gradient flows to them.
        cum_prob: T, in (0, 1).
        max_k: Largest K, None for no cap but C - 1. The released code has 3.
        k_rule: ``'n-1'``, ``'n'`` or ``'ratio'``, see :func:`k_from_n`.
        k_ratio: The alpha of ``k_rule='ratio'``.

    Returns:
        The assignment.
    """
    probs = target_logits.detach().to(compute_dtype(target_logits)).softmax(dim=1)
    num_classes = probs.shape[1]
    ranked, order = torch.sort(probs, dim=1, descending=True, stable=True)
    cumulative = ranked.cumsum(dim=1)
    n_minus_1 = (cumulative[:, :-1] < cum_prob).sum(dim=1, keepdim=True)
    k = torch.tensor(k_from_n(num_classes, max_k, k_rule, k_ratio), device=probs.device)[n_minus_1]
    rank = torch.arange(num_classes, device=probs.device).view(1, -1, *[1] * (probs.dim() - 2))
    positive = torch.zeros_like(probs, dtype=torch.bool).scatter(1, order, (rank < k).expand_as(order))
    return FuzzyPositives(positive, k.squeeze(1),
                          cumulative.gather(1, k - 1).squeeze(1), ranked.gather(1, k).squeeze(1))


def fuzzy_positive_loss(logits: Tensor, positive: Tensor) -> Tensor:
    r"""Eq. 7: every positive logit above every negative one, in smooth form.

    .. math:: L^f = \log\Big(1 + \sum_{i \in Y} e^{-z_i} \sum_{j \notin Y} e^{z_j}\Big)

    With one positive this is cross entropy (Eq. 9).

    Args:
        logits: Student logits, float, (N, C, *).
        positive: Y, bool, (N, C, *); at least one class in and one class outside.

    Returns:
        Loss of each pixel, (N, *), >= 0.
    """
    lse_positive = (-logits).masked_fill(~positive, float('-inf')).logsumexp(dim=1)
    lse_negative = logits.masked_fill(positive, float('-inf')).logsumexp(dim=1)
    return F.softplus(lse_positive + lse_negative)


def fuzzy_positive_directions(logits: Tensor, positive: Tensor) -> tuple[Tensor, Tensor]:
    r"""Eq. 8 in two factors: the length of pull and push, and how the classes share it.

    Args:
        logits: Student logits, float, (N, C, *).
        positive: Y, bool, (N, C, *).

    Returns:
        The size :math:`s = \sigma(LSE_Y(-z) + LSE_{\bar Y}(z))`, (N, *), in (0, 1), and the shares, (N, C, *):
        :math:`-\mathrm{softmax}_Y(-z)` for positives, :math:`+\mathrm{softmax}_{\bar Y}(z)` for negatives.
    """
    pull = (-logits).masked_fill(~positive, float('-inf'))
    push = logits.masked_fill(positive, float('-inf'))
    size = torch.sigmoid(pull.logsumexp(dim=1) + push.logsumexp(dim=1))
    return size, push.softmax(dim=1) - pull.softmax(dim=1)


def fuzzy_positive_gradient(logits: Tensor, positive: Tensor) -> Tensor:
    """Eq. 8: gradient of :func:`fuzzy_positive_loss` to the logits, in closed form.

    The smallest positive gets the largest pull; pull and push have the same sum, in (0, 1). With one positive it is
    Eq. 3, softmax minus one-hot.

    Args:
        logits: Student logits, float, (N, C, *).
        positive: Y, bool, (N, C, *).

    Returns:
        Gradient, (N, C, *), of Euclidean length at most sqrt(2) per pixel.
    """
    size, shares = fuzzy_positive_directions(logits, positive)
    return size.unsqueeze(1) * shares


def accurate_log1p(x: Tensor) -> Tensor:
    """``log(1 + x)`` for x >= 0 to full precision, in operations that run vectorized on a CPU.

    What rounding 1 + x to u lost is x - (u - 1); its first order effect on the logarithm is added back.
    """
    u = x + 1
    return torch.log(u) + (x - (u - 1)) / u


def fuzzy_positive_weight(positive_prob: Tensor,
                          negative_prob: Tensor,
                          k: Tensor,
                          mode: str = 'concave',
                          scale: float = 50.,
                          bound: str = 'positive_mean') -> Tensor:
    r"""Eq. 10-12: trust in "the truth is in Y", falling from 1 to 0 as the best class outside comes near.

    With q = ``negative_prob``, A = ``scale`` and M the largest value that q can take:

    ================  ==========================================================  ======================================
    mode              weight                                                      stated by
    ================  ==========================================================  ======================================
    ``'concave'``     :math:`\log(1 + A (M - q)) / \log(1 + A M)`                 paper
    ``'linear'``      :math:`(M - q) / M`                                         released code
    ``'convex'``      :math:`(M - q) / (M + q)`                                   released code on CPS
    ``'convex_ael'``  :math:`(M - q) / (M + 4 q)`                                 released code on AEL
    ``'none'``        1                                                           released VOC script on CPS
    ================  ==========================================================  ======================================

    Args:
        positive_prob: Summed teacher probability of Y, any shape.
        negative_prob: q, same shape.
        k: K, same shape.
        mode: One of the table.
        scale: A of the concave mode, > 0.
        bound: M. ``'positive_mean'``: mean probability of the positives (paper, Eq. 10). ``'top_k_plus_1'``: mean of
            the K + 1 most probable classes (released code).

    Returns:
        Weight, same shape, in [0, 1].
    """
    if mode == 'none':
        return torch.ones_like(positive_prob)
    m = positive_prob / k if bound == 'positive_mean' else (positive_prob + negative_prob) / (k + 1)
    gap = (m - negative_prob).clamp(min=0)  # below 0 only by rounding
    if mode == 'concave':
        weight = accurate_log1p(scale * gap) / accurate_log1p(scale * m)
    elif mode == 'linear':
        weight = gap / m
    else:
        weight = gap / (m + negative_prob * (4 if mode == 'convex_ael' else 1))
    return weight.clamp(max=1)


def hard_pseudo_label_loss(logits: Tensor, target_logits: Tensor) -> Tensor:
    """Eq. 2, vanilla positive learning: cross entropy against the teacher's most probable class.

    Args:
        logits: Student logits, float, (N, C, *).
        target_logits: Teacher logits, same shape. No gradient flows to them.

    Returns:
        Loss of each pixel, (N, *), >= 0.
    """
    label = target_logits.detach().argmax(dim=1)
    return F.cross_entropy(logits, label, reduction='none').clamp(max=MAX_PIXEL_LOSS)


def soft_pseudo_label_loss(logits: Tensor, target_logits: Tensor) -> Tensor:
    """Appendix, soft loss: cross entropy against the teacher's whole softmax.

    Args:
        logits: Student logits, float, (N, C, *).
        target_logits: Teacher logits, same shape. No gradient flows to them.

    Returns:
        Loss of each pixel, (N, *), >= 0.
    """
    # Cut before the product: 0 * -inf is NaN.
    log_probs = logits.log_softmax(dim=1).clamp(min=-MAX_PIXEL_LOSS)
    return -(target_logits.detach().softmax(dim=1) * log_probs).sum(dim=1)


def negative_learning_loss(logits: Tensor, target_logits: Tensor, threshold: float = 0.2) -> tuple[Tensor, Tensor]:
    r"""Appendix, negative learning: classes that the teacher finds improbable are pushed down.

    .. math:: L^n = -\sum_{j:\, p_j < \tau} \log(1 - \mathrm{softmax}(z)_j)

    Args:
        logits: Student logits, float, (N, C, *), C >= 2.
        target_logits: Teacher logits, same shape. No gradient flows to them.
        threshold: tau, in (0, 1].

    Returns:
        Loss of each pixel, (N, *), >= 0, a sum over its negative classes; and the mask of the negative classes, bool,
        (N, C, *).
    """
    negative = target_logits.detach().softmax(dim=1) < threshold
    log_probs = logits.log_softmax(dim=1).clamp(min=-MAX_PIXEL_LOSS)
    # 1 - p of the student's best class cancels to 0 once p rounds to 1; the sum over the other classes does not.
    # Every other class has p <= 1/2, where log1p is exact enough. The two are never evaluated at the other's pixels,
    # since an infinite gradient times a mask of zero would be NaN.
    best = torch.zeros_like(negative).scatter(1, logits.detach().argmax(dim=1, keepdim=True), True)
    log_rest = log_probs.masked_fill(best, float('-inf')).logsumexp(dim=1, keepdim=True)
    log_complement = torch.where(best, log_rest, torch.log1p(-log_probs.masked_fill(best, -1.).exp()))
    return -log_complement.masked_fill(~negative, 0.).sum(dim=1), negative
