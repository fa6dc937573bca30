"""What all losses share: their arguments, and the checks of these; and sums over all processes."""

import math
from typing import Any

from mmengine.dist import all_reduce, get_world_size
from torch import Tensor, nn

from mmssl.utils.values import CheckedArguments

REDUCTIONS = ('mean', 'sum', 'none')


class BaseLoss(CheckedArguments, nn.Module):
    """Arguments that every loss takes, and messages that name the loss and the key.

    After each call ``statistics`` holds detached scalars, to be logged.

    Args:
        loss_weight: Factor of the loss, finite.
        reduction: ``'mean'``, ``'sum'`` or ``'none'``.
        loss_name: Key of the loss in mmseg's log; must contain ``loss`` to be summed into the total.
    """

    def __init__(self, loss_weight: float, reduction: str, loss_name: str) -> None:
        super().__init__()
        self.check_number('loss_weight', loss_weight, math.isfinite, 'finite')
        self.check_choice('reduction', reduction, REDUCTIONS)
        self.loss_weight = loss_weight
        self.reduction = reduction
        self._loss_name = loss_name
        self.statistics: dict[str, Tensor] = {}

    @property
    def loss_name(self) -> str:
        """Key of the loss in mmseg's log."""
        return self._loss_name

    def check_flag(self, key: str, value: Any) -> None:
        """Raise ValueError, naming the argument, unless it is True or False; 1 and 0 are neither."""
        if not isinstance(value, bool):
            raise ValueError(f'{self.config_name}: `{key}` must be True or False, got {value!r}')

    def choose_reduction(self, reduction_override: str | None, avg_factor: float | Tensor | None) -> str:
        """The reduction of one call; a ValueError names what does not fit."""
        if reduction_override is not None:
            self.check_choice('reduction_override', reduction_override, REDUCTIONS)
        reduction = reduction_override or self.reduction
        if reduction == 'sum' and avg_factor is not None:
            raise ValueError(f"{self.config_name}: `avg_factor` can not be used with `reduction='sum'`")
        return reduction


def sum_over_ranks(values: Tensor) -> Tensor:
    """Sum of each number over all processes; ``values`` itself in a single one."""
    if get_world_size() > 1:
        all_reduce(values, 'sum')
    return values
