r"""Gradient surgery for a primary and an auxiliary loss: reliability-aware gradient decoupling (RGD), and PCGrad.

Both combine the gradients :math:`g_p` of the primary and :math:`g_r` of the auxiliary loss linearly,
:math:`g = a\, g_p + b\, g_r`, with :math:`a` and :math:`b` functions of the three inner products
:math:`\langle g_p, g_p \rangle`, :math:`\langle g_r, g_r \rangle` and :math:`\langle g_p, g_r \rangle` alone. So
nothing here sees a gradient but :func:`decouple`, which is for vectors at hand.

Only a summary of the paper (Wei et al., Reliability-aware Gradient Decoupling for Partial Label Learning, 2026) is
known: it states what is removed, what is scaled and what is guaranteed. The concrete formulas are ours.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

BALANCES = ('min', 'ratio', None)
# A remainder smaller than this share of the auxiliary gradient is rounding noise of exactly opposite gradients.
NOISE = 1e-6


@dataclass(frozen=True)
class Combination:
    r"""Coefficients of a combined gradient, and what led to them; tensors of one shape.

    Attributes:
        primary: a, factor of the primary gradient.
        auxiliary: b, factor of the auxiliary gradient.
        conflict: Whether the two gradients had a negative inner product, bool.
        cosine: Their cosine, in [-1, 1]; 0 if one of them is zero.
        cosine_after: Cosine of the primary gradient and the auxiliary one without the conflicting component.
        balance: :math:`\gamma`, the factor of the norm balance.
    """

    primary: Tensor
    auxiliary: Tensor
    conflict: Tensor
    cosine: Tensor
    cosine_after: Tensor
    balance: Tensor


def rgd_combination(
    primary_square: Tensor,
    auxiliary_square: Tensor,
    inner: Tensor,
    coefficient: float | Tensor = 1.0,
    balance: str | None = 'min',
    ratio: float = 1.0,
    projection: bool = True,
) -> Combination:
    r"""Asymmetric decoupling with norm balance.

    .. math:: g_r^{dec} &= g_r - \frac{\min(0, \langle g_r, g_p \rangle)}{\|g_p\|^2}\, g_p \\
              \gamma &= \min(1, \rho \|g_p\| / \|g_r^{dec}\|) \\
              g &= g_p + \beta\, g_r^{dec}, \qquad \beta = \lambda \bar\alpha \gamma

    With the projection, :math:`\langle g_r^{dec}, g_p \rangle \ge 0` and :math:`\langle g, g_p \rangle \ge \|g_p\|^2`:
    a small step along :math:`-g` lowers the primary loss. With ``balance='min'``,
    :math:`\|g - g_p\| \le \lambda \bar\alpha \rho \|g_p\|`.

    Args:
        primary_square: :math:`\|g_p\|^2`, float64 for exact opposites to be seen as such, any shape.
        auxiliary_square: :math:`\|g_r\|^2`, the same shape.
        inner: :math:`\langle g_p, g_r \rangle`, the same shape.
        coefficient: :math:`\lambda \bar\alpha` >= 0: schedule times reliability of the batch.
        balance: ``'min'``: only shrinks; ``'ratio'``: :math:`\rho \|g_p\| / \|g_r^{dec}\|` as it is; None: 1.
        ratio: :math:`\rho` > 0.
        projection: Whether the conflicting component is removed.

    Returns:
        a, b and the diagnostics.

    Raises:
        ValueError: ``balance`` is none of these.
    """
    if balance not in BALANCES:
        raise ValueError(f'rgd_combination: `balance` must be one of {list(BALANCES)}, got {balance!r}')
    primary_norm, auxiliary_norm = primary_square.sqrt(), auxiliary_square.sqrt()
    removed = _divide(inner.clamp(max=0), primary_square) if projection else torch.zeros_like(inner)
    square = (auxiliary_square - 2 * removed * inner + removed**2 * primary_square).clamp(min=0)
    norm = square.sqrt()
    is_noise = norm <= NOISE * auxiliary_norm
    gamma = torch.ones_like(norm)
    if balance is not None:
        gamma = _divide(ratio * primary_norm, norm)
    if balance == 'min':
        gamma = gamma.clamp(max=1)
    beta = torch.where(is_noise, 0.0, coefficient * gamma)
    inner_after = inner - removed * primary_square
    return Combination(
        primary=1 - beta * removed,
        auxiliary=beta,
        conflict=inner < 0,
        cosine=_divide(inner, primary_norm * auxiliary_norm).clamp(-1, 1),
        cosine_after=torch.where(is_noise, 0.0, _divide(inner_after, primary_norm * norm)).clamp(-1, 1),
        balance=gamma,
    )


def pcgrad_combination(
    primary_square: Tensor, auxiliary_square: Tensor, inner: Tensor, coefficient: float | Tensor = 1.0
) -> Combination:
    r"""PCGrad (Yu et al., NeurIPS 2020) for two losses: each gradient loses what conflicts with the other.

    .. math:: g = g_p - \frac{\min(0, \langle g_p, g_r \rangle)}{\|g_r\|^2} g_r
                + g_r - \frac{\min(0, \langle g_p, g_r \rangle)}{\|g_p\|^2} g_p

    Args:
        primary_square: :math:`\|g_p\|^2`.
        auxiliary_square: :math:`\|g_r\|^2`.
        inner: :math:`\langle g_p, g_r \rangle`.
        coefficient: Factor of the auxiliary loss, >= 0: its gradient is multiplied before the projections.

    Returns:
        a, b and the diagnostics; ``balance`` is 1.
    """
    coefficient = torch.as_tensor(coefficient, dtype=inner.dtype, device=inner.device)
    scaled_square, scaled_inner = coefficient**2 * auxiliary_square, coefficient * inner
    conflict = scaled_inner.clamp(max=0)
    plain = rgd_combination(primary_square, auxiliary_square, inner)
    return Combination(
        primary=1 - _divide(conflict, primary_square),
        auxiliary=coefficient * (1 - _divide(conflict, scaled_square)),
        conflict=inner < 0,
        cosine=plain.cosine,
        cosine_after=plain.cosine_after,
        balance=torch.ones_like(inner),
    )


def decouple(primary: Tensor, auxiliary: Tensor, coefficient: float = 1.0, balance: str | None = 'min') -> Tensor:
    """Combined gradient of two vectors, :func:`rgd_combination` applied.

    Args:
        primary: :math:`g_p`, floating point, any shape.
        auxiliary: :math:`g_r`, the same shape.
        coefficient: As in :func:`rgd_combination`.
        balance: As in :func:`rgd_combination`.

    Returns:
        :math:`g`, the shape and dtype of ``primary``.

    Examples:
        >>> decouple(torch.tensor([1.0, 0.0]), torch.tensor([-1.0, 1.0]))
        tensor([1., 1.])
    """
    products = inner_products(primary.flatten(), auxiliary.flatten())
    chosen = rgd_combination(*products, coefficient=coefficient, balance=balance)
    return chosen.primary.to(primary.dtype) * primary + chosen.auxiliary.to(primary.dtype) * auxiliary


def inner_products(primary: Tensor, auxiliary: Tensor, chunk: int = 1 << 20) -> Tensor:
    r""":math:`\|g_p\|^2`, :math:`\|g_r\|^2` and :math:`\langle g_p, g_r \rangle` of two vectors, summed in float64.

    In single precision a sum over millions of parameters has no more digits than exactly opposite gradients need, and
    squares of gradients under a loss scale may overflow. The copies in float64 are made by parts.

    Args:
        primary: Shape (n,), floating point.
        auxiliary: Shape (n,).
        chunk: Numbers copied at a time.

    Returns:
        Float64, shape (3,); float32 on devices that have no float64.
    """
    dtype = torch.float32 if primary.device.type == 'mps' else torch.float64
    total = torch.zeros(3, dtype=dtype, device=primary.device)
    for first, second in zip(primary.split(chunk), auxiliary.split(chunk), strict=True):
        both = torch.stack([first, second]).to(dtype)
        gram = both @ both.T
        total += torch.stack([gram[0, 0], gram[1, 1], gram[0, 1]])
    return total


def _divide(numerator: Tensor, denominator: Tensor) -> Tensor:
    # No epsilon: it would be no small number beside the squares of small gradients, and break what is promised.
    return numerator / denominator.clamp(min=torch.finfo(denominator.dtype).tiny)
