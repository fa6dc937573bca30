"""CombinedLoss: several losses where a head takes one, such as ADR beside cross entropy in a classifier."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from mmengine.logging import MessageHub
from torch import Tensor, nn

from mmssl.registry import MODELS

from .label_loss import LabelLoss

OUTPUTS = ('sum', 'parts')


@MODELS.register_module()
class CombinedLoss(nn.Module):
    """The sum of several losses, each with its own ``loss_weight``, as the ``loss`` of one head.

    Every argument of a call goes to every loss. mmpretrain's heads log one number, ``loss``; the parts are logged
    beside it as ``part_cross_entropy``, ``part_adr``: values with their weights, which sum to ``loss``.

    Args:
        losses: Configs or modules, at least one. A plain type is found in the default scope, as in the head itself.
        output: ``'sum'``: one tensor, for mmpretrain and mmseg; ``'parts'``: a dictionary ``loss_...`` whose values
            are summed by the model, for heads that take one, such as mmaction2's.
        log_parts: Whether the parts are logged with ``output='sum'``, in training. Reading a number makes a GPU wait at
            every step.
        loss_name: Key of the loss in mmseg's log.

    Raises:
        ValueError: An argument is out of its range.
    """

    def __init__(self,
                 losses: Sequence[Mapping[str, Any] | nn.Module],
                 output: str = 'sum',
                 log_parts: bool = True,
                 loss_name: str = 'loss_combined') -> None:
        super().__init__()
        if isinstance(losses, (str, Mapping)) or not isinstance(losses, Sequence) or not losses:
            raise ValueError(f'mmssl.CombinedLoss: `losses` must be a list of loss configs, got {losses!r}')
        if output not in OUTPUTS:
            raise ValueError(f'mmssl.CombinedLoss: `output` must be one of {list(OUTPUTS)}, got {output!r}')
        if not isinstance(log_parts, bool):
            raise ValueError(f'mmssl.CombinedLoss: `log_parts` must be True or False, got {log_parts!r}')
        self.losses = nn.ModuleList(loss if isinstance(loss, nn.Module) else MODELS.build(loss) for loss in losses)
        self.output, self.log_parts, self._loss_name = output, log_parts, loss_name
        self.names = part_names(self.losses)
        self.statistics: dict[str, Tensor] = {}

    @property
    def loss_name(self) -> str:
        """Key of the loss in mmseg's log."""
        return self._loss_name

    @property
    def margin_logits(self) -> bool:
        """False if one of the losses is on the logits without margin, which the head then has to give as well."""
        return all(getattr(loss, 'margin_logits', True) for loss in self.losses)

    def forward(self, cls_score: Tensor, label: Tensor, *args: Any, margin_free_logits: Tensor | None = None,
                **kwargs: Any) -> Tensor | dict[str, Tensor]:
        """Call every loss.

        Args:
            cls_score: Logits, (N, C, *).
            label: Whatever all of the losses take.
            args: Passed on.
            margin_free_logits: Passed on to the losses that know them.
            kwargs: Passed on.

        Returns:
            The sum, or a dictionary of the parts.
        """
        parts = {}
        for name, loss in zip(self.names, self.losses, strict=True):
            extra = dict(margin_free_logits=margin_free_logits) if isinstance(loss, LabelLoss) else {}
            parts[name] = loss(cls_score, label, *args, **kwargs, **extra)
        self.statistics = {f'part_{name}': part.detach().mean() for name, part in parts.items()}
        if self.output == 'parts':
            return {f'loss_{name}': part for name, part in parts.items()}
        if self.log_parts and self.training and torch.is_grad_enabled():
            # Where mmengine's own hooks put the losses of a step, and its logger looks for numbers.
            hub = MessageHub.get_current_instance()
            for name, value in self.statistics.items():
                hub.update_scalar(f'train/{name}', value)
        return sum(parts.values())


def part_names(losses: Sequence[nn.Module]) -> list[str]:
    """A name for each loss: its ``loss_name``, or that of its class, without "loss"; numbered where they are equal."""
    names: list[str] = []
    for loss in losses:
        name = getattr(loss, 'loss_name', None) or re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_', type(loss).__name__).lower()
        name = re.sub(r'^loss_|_loss$', '', name)
        count = sum(other.rstrip('0123456789') == name for other in names)
        names.append(f'{name}{count + 1}' if count else name)
    return names
