"""Avg-Clustering of LayerMatch: the step of the averaged classifier, and a loss whose gradient is known already."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


@torch.no_grad()
def average_step_(averages: Sequence[Tensor], gradients: Sequence[Tensor], momentum: float, lr: float) -> None:
    r"""Move the averaged classifier along its own gradient, in place (LayerMatch, Sec. 4.2.2).

    With the paper's decay :math:`m` and :math:`\tilde\beta = \bar\beta - \alpha \nabla_{\bar\beta} L_{ac}`,

    .. math:: \bar\beta \leftarrow m \bar\beta + (1 - m) \tilde\beta = \bar\beta - (1 - m)\, \alpha\,
              \nabla_{\bar\beta} L_{ac}.

    The second form is computed: the published :math:`(1 - m) \alpha` is 5e-7, and the first would lose such a step in
    the rounding of :math:`m \bar\beta`.

    Args:
        averages: :math:`\bar\beta`, weight and bias, float32 or float64.
        gradients: Of the unweighted loss, the same shapes.
        momentum: :math:`1 - m`, in [0, 1], as in mmengine.
        lr: :math:`\alpha` >= 0.

    Raises:
        ValueError: The lists differ in length, or a number is out of its range.
    """
    if len(averages) != len(gradients):
        raise ValueError(f'average_step_: {len(averages)} averages, but {len(gradients)} gradients')
    if not 0 <= momentum <= 1 or not 0 <= lr < float('inf'):
        raise ValueError(
            f'average_step_: `momentum` must be in [0, 1] and `lr` finite and >= 0, got {momentum} and {lr}'
        )
    for average, gradient in zip(averages, gradients, strict=True):
        average.add_(gradient, alpha=-momentum * lr)


def is_reset(step: int, reset_interval: int) -> bool:
    r"""Whether :math:`\bar\beta_t` is set to the main classifier, before the update of iteration t (t mod N = 0).

    Args:
        step: t >= 0.
        reset_interval: N >= 1.
    """
    return step % reset_interval == 0


def with_gradient(value: Tensor, tensors: Sequence[Tensor], gradients: Sequence[Tensor]) -> Tensor:
    """A loss whose gradient was computed before: its backward pass only multiplies.

    Args:
        value: The loss, a scalar; detached here.
        tensors: What it was computed from, with their graphs.
        gradients: Its gradient with respect to each of ``tensors``, same shapes.

    Returns:
        ``value``, attached to ``tensors``.
    """
    return _KnownGradient.apply(value.detach(), tuple(gradients), *tensors)


class _KnownGradient(torch.autograd.Function):
    """Returns its first argument and, backward, its second one times what arrives."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, gradients: tuple[Tensor, ...], *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*gradients)
        return value.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return (None, None, *(grad * gradient for gradient in ctx.saved_tensors))
