"""Exponential moving average of tensors: the momentum of a step, and the update in place."""

from collections.abc import Sequence

import torch
from torch import Tensor

# What may happen to the floating-point buffers of an averaged model: averaged like the parameters, copied, or left.
BUFFER_RULES = ('average', 'copy', 'own')


def ema_momentum(step: int, momentum: float, warmup: bool = True) -> float:
    r"""Momentum of one update, :math:`m_t = \max(1 / (t + 1), m)`.

    Mean teachers publish the same as a decay, :math:`\min(1 - 1 / (t + 1), 1 - m)`. While :math:`1 / (t + 1) > m`, the
    average is the plain mean of all states so far; the first update copies.

    Args:
        step: t, number of updates before this one, >= 0.
        momentum: m, in [0, 1]: weight of the new state.
        warmup: Whether t counts at all; ``False`` returns ``momentum``.

    Returns:
        In [0, 1].

    Raises:
        ValueError: An argument is out of its range.
    """
    if not 0 <= momentum <= 1 or step < 0:
        raise ValueError(f'ema_momentum: `momentum` must be in [0, 1] and `step` >= 0, got {momentum} and {step}')
    return max(1 / (step + 1), momentum) if warmup else momentum


@torch.no_grad()
def ema_update_(averages: Sequence[Tensor], values: Sequence[Tensor], momentum: float) -> None:
    """``averages = (1 - momentum) * averages + momentum * values``, in place, in a few kernels for all tensors.

    What is no floating-point number (counters, masks) is copied: an average of counters is no counter.

    Args:
        averages: Any shapes and dtypes.
        values: The same shapes; cast where the dtype differs.
        momentum: In [0, 1]. 1 copies exactly, 0 keeps the averages.

    Raises:
        ValueError: The lists differ in length, or ``momentum`` is out of its range.
    """
    if len(averages) != len(values):
        raise ValueError(f'ema_update_: {len(averages)} averages, but {len(values)} values')
    if not 0 <= momentum <= 1:
        raise ValueError(f'ema_update_: `momentum` must be in [0, 1], got {momentum}')
    floating: tuple[list[Tensor], list[Tensor]] = ([], [])
    for average, value in zip(averages, values, strict=True):
        if not average.is_floating_point() or momentum == 1:
            average.copy_(value)
        else:
            floating[0].append(average)
            floating[1].append(value if value.dtype == average.dtype else value.to(average.dtype))
    if floating[0] and momentum > 0:
        torch._foreach_lerp_(*floating, momentum)
