r"""Adaptive discriminative regularization: the equations of the paper, written as they are printed, on plain tensors.

Adaptive Discriminative Regularization for Visual Classification (ADR). ``z`` are logits, (N, C, *), ``y`` their
softmax, and tau = ``topk`` is the assumed number of similar classes:

* Eq. 4, phi (uncertainty of a prediction): :func:`normalized_entropy`, :func:`normalized_gini`; its batch mean:
  :func:`mean_uncertainty`
* Eq. 4, T (confidence-based normalization): :func:`top_confidence`
* Eq. 4, F (the penalty), in log space: :func:`log_penalty`; all of Eq. 4: :func:`adr_penalty`
* Eq. 8 (gradient of the penalty to y): :func:`penalty_gradient`
* What follows from Eq. 4: :func:`turning_point`, :func:`log_peak`, :func:`penalty_along_confidence`

These are the definitions, made to be read and to be called for diagnostics. Training goes through
:func:`mmssl.functional.adr_fused.adr_loss`, which computes the same numbers with a gradient in closed form.
"""

import math

import torch
from torch import Tensor

UNCERTAINTIES = ('entropy', 'variance')
PHIS = ('batch', 'sample')
NORMS = (1, 2)
DEFAULT_TOPK = 3
# phi is not taken below this, so that its logarithm and inverse are finite; F is 0 long before.
MIN_PHI = 1e-8
# F is cut at exp(50), so that sums over any batch are finite in float32.
MAX_LOG_PENALTY = 50.
# Smallest logit relative to the largest: its probability is 0 in any precision, and 0 times its logarithm is not NaN.
MIN_LOG_PROB = -1e4


def stable_log_probs(logits: Tensor) -> Tensor:
    """Log-softmax over classes that is finite for all finite logits.

    Args:
        logits: Float32 or float64, (N, C, *).

    Returns:
        (N, C, *), in [-1e4 - log C, 0]; the gradient of what is cut is 0.
    """
    shifted = logits - logits.detach().amax(dim=1, keepdim=True)
    return shifted.clamp(min=MIN_LOG_PROB).log_softmax(dim=1)


def entropy(logits: Tensor) -> Tensor:
    """Entropy of the softmax in nats.

    Args:
        logits: Float32 or float64, (N, C, *).

    Returns:
        (N, *), in [0, log C].
    """
    log_probs = stable_log_probs(logits)
    return -(log_probs.exp() * log_probs).sum(dim=1)


def normalized_entropy(logits: Tensor) -> Tensor:
    r"""Eq. 4, :math:`H_i = -\frac{1}{\log c} \sum_j y_{ij} \log y_{ij}`: 0 for one sure class, 1 for none.

    Args:
        logits: Float32 or float64, (N, C, *), C >= 2.

    Returns:
        (N, *), in [0, 1].
    """
    return entropy(logits) / math.log(logits.shape[1])


def normalized_gini(logits: Tensor) -> Tensor:
    r"""The variance of y as uncertainty (Fig. 4 c): :math:`1 - \mathrm{Var}(y) / \max \mathrm{Var}`.

    The variance of the C numbers y is largest, :math:`(1 - 1/c)/c`, for one sure class and 0 for equal ones, so this is
    :math:`(1 - \sum_j y_j^2) \, c / (c - 1)`. The paper does not print its normalization; this one has the range that
    Eq. 3 asks for.

    Args:
        logits: Float32 or float64, (N, C, *), C >= 2.

    Returns:
        (N, *), in [0, 1].
    """
    probs, num_classes = stable_log_probs(logits).exp(), logits.shape[1]
    # Not 1 - sum(y^2): that cancels where one class is sure.
    return (probs * (1 - probs)).sum(dim=1) * num_classes / (num_classes - 1)


def mean_uncertainty(uncertainty: Tensor, valid: Tensor | None = None) -> Tensor:
    """Eq. 4, phi: mean uncertainty of the batch.

    Args:
        uncertainty: (N, *).
        valid: Pixels that count, bool, (N, *); None for all.

    Returns:
        Scalar; 0 if nothing is valid.
    """
    if valid is None:
        return uncertainty.mean()
    return uncertainty.masked_fill(~valid, 0).sum() / valid.sum().clamp(min=1)


def top_confidence(probs: Tensor, topk: int, norm: int = 2) -> Tensor:
    r"""Eq. 4, :math:`T_i`: squared l2 norm of the tau largest probabilities, or their l1 norm.

    Args:
        probs: y, (N, C, *).
        topk: tau, in [1, C].
        norm: 2 (default of the paper) or 1 (which it names as possible).

    Returns:
        (N, *), in (0, 1].
    """
    top = probs.topk(topk, dim=1).values
    return (top.square() if norm == 2 else top).sum(dim=1)


def log_penalty(phi: Tensor, confidence: Tensor, topk: int) -> Tensor:
    r"""Logarithm of Eq. 4: :math:`\log F = -\frac{\tau}{2} \log(2 \pi \varphi) - \frac{T}{2 \varphi}`.

    Args:
        phi: Any shape that broadcasts with ``confidence``; taken as at least 1e-8, without a gradient below.
        confidence: T.
        topk: tau.
    """
    phi = phi.clamp(min=MIN_PHI)
    return -0.5 * topk * torch.log(2 * math.pi * phi) - confidence / (2 * phi)


def adr_penalty(logits: Tensor,
                topk: int = DEFAULT_TOPK,
                uncertainty: str = 'entropy',
                phi: str = 'batch',
                norm: int = 2,
                detach_phi: bool = False,
                max_log_penalty: float = MAX_LOG_PENALTY,
                valid: Tensor | None = None) -> Tensor:
    r"""Eq. 4, :math:`F_i = (2 \pi \varphi)^{-\tau/2} \exp(-T_i / (2 \varphi))`, through autograd.

    Args:
        logits: Float32 or float64, (N, C, *), C >= 2.
        topk: tau, in [1, C].
        uncertainty: ``'entropy'`` or ``'variance'``.
        phi: ``'batch'``: the mean over the batch (Eq. 4); ``'sample'``: each sample its own (Eq. 7, 8 and appendix).
        norm: 2 or 1, see :func:`top_confidence`.
        detach_phi: Whether phi is a constant for the gradient.
        max_log_penalty: F is cut at exp of this, with gradient 0 above.
        valid: Pixels that are in the batch mean, bool, (N, *); None for all.

    Returns:
        F of each pixel, (N, *), > 0; also where ``valid`` is False.
    """
    value = (normalized_entropy if uncertainty == 'entropy' else normalized_gini)(logits)
    if phi == 'batch':
        value = mean_uncertainty(value, valid)
    if detach_phi:
        value = value.detach()
    confidence = top_confidence(stable_log_probs(logits).exp(), topk, norm)
    return log_penalty(value, confidence, topk).clamp(max=max_log_penalty).exp()


def penalty_gradient(probs: Tensor, topk: int) -> Tensor:
    r"""Eq. 8 for a phi of each sample (entropy, l2): gradient of F to y, in closed form.

    .. math:: \frac{\partial F}{\partial y_j} = F \Big[ -\frac{y_j}{\varphi} [j \in \mathrm{top}] +
              \Big(\frac{T}{2 \varphi^2} - \frac{\tau}{2 \varphi}\Big) \frac{\partial \varphi}{\partial y_j} \Big],
              \qquad \frac{\partial \varphi}{\partial y_j} = -\frac{\log y_j + 1}{\log c}

    The y are independent variables here, as for autograd; Eq. 17 instead takes the derivative of the unnormalized
    entropy on the path where the other classes give way in proportion.

    Args:
        probs: y, (N, C, *), > 0.
        topk: tau, in [1, C].

    Returns:
        (N, C, *).
    """
    log_probs, log_c = probs.log(), math.log(probs.shape[1])
    phi = -(probs * log_probs).sum(dim=1, keepdim=True) / log_c
    top = torch.zeros_like(probs).scatter(1, probs.topk(topk, dim=1).indices, 1.)
    confidence = (probs.square() * top).sum(dim=1, keepdim=True)
    penalty = log_penalty(phi, confidence, topk).exp()
    slope = confidence / (2 * phi.square()) - topk / (2 * phi)
    return penalty * (-probs / phi * top - slope * (log_probs + 1) / log_c)


def turning_point(topk: int, confidence: float = 1.) -> float:
    """The phi = T/tau at which F is largest for a given T: below it F rises with the uncertainty, above it falls.

    Args:
        topk: tau.
        confidence: T, > 0.
    """
    return confidence / topk


def log_peak(topk: int, confidence: float = 1.) -> float:
    r"""Logarithm of F at its turning point, :math:`\frac{\tau}{2} (\log \frac{\tau}{2 \pi T} - 1)`.

    With T = 1 it is above 0, so F above 1, from tau = 18 on (tau > 2 pi e), and grows without bound: 27 at tau = 50.

    Args:
        topk: tau.
        confidence: T, > 0.
    """
    return 0.5 * topk * (math.log(topk / (2 * math.pi * confidence)) - 1)


def penalty_along_confidence(confidences: Tensor,
                             num_classes: int,
                             topk: int,
                             uncertainty: str = 'entropy',
                             phi: float | None = None,
                             norm: int = 2) -> Tensor:
    """F on the path where one class has probability p and the others share the rest equally.

    Args:
        confidences: p, float64, (M,), in [1/C, 1).
        num_classes: C.
        topk: tau, in [1, C].
        uncertainty: ``'entropy'`` or ``'variance'``.
        phi: A constant phi, as that of a batch; None for that of the sample itself.
        norm: 2 or 1.

    Returns:
        F at each p, (M,), not cut.
    """
    rest = (1 - confidences) / (num_classes - 1)
    if phi is None:
        if uncertainty == 'entropy':
            value = -(confidences * confidences.log() + (1 - confidences) * rest.log()) / math.log(num_classes)
        else:
            value = (1 - confidences) * (1 + confidences - rest) * num_classes / (num_classes - 1)
    else:
        value = torch.as_tensor(phi, dtype=confidences.dtype)
    total = confidences**norm + (topk - 1) * rest**norm
    return log_penalty(value, total, topk).exp()
