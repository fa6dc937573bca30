"""EntropyLoss: entropy of the prediction as a penalty beside cross entropy."""

from typing import Any

import torch
from torch import Tensor

from mmssl.functional.adr import entropy
from mmssl.functional.fpl import compute_dtype
from mmssl.registry import MODELS

from .label_loss import LabelLoss


@MODELS.register_module()
class EntropyLoss(LabelLoss):
    r"""Entropy regularization, what ADR is compared with.

    .. math:: L = \lambda \frac{1}{B} \sum_i \sum_j -y_{ij} \log y_{ij}

    In nats, computed in float32, also under AMP; finite for all finite logits. ``statistics`` after a call:
    ``entropy``, its mean over valid pixels, without ``weight``.

    Args:
        margin_logits: As of ``mmssl.ADRLoss``.
        loss_weight: lambda, finite.
        reduction: ``'mean'`` over valid pixels, ``'sum'`` or ``'none'``.
        loss_name: Key of the loss in mmseg's log.

    Raises:
        ValueError: An argument is out of its range.
    """

    def __init__(self,
                 margin_logits: bool = True,
                 loss_weight: float = 0.1,
                 reduction: str = 'mean',
                 loss_name: str = 'loss_entropy') -> None:
        super().__init__(loss_weight, reduction, loss_name)
        self.check_flag('margin_logits', margin_logits)
        self.margin_logits = margin_logits

    def forward(self,
                logits: Tensor,
                label: Tensor | None = None,
                weight: Tensor | None = None,
                ignore_index: int | None = None,
                avg_factor: float | Tensor | None = None,
                reduction_override: str | None = None,
                margin_free_logits: Tensor | None = None,
                **kwargs: Any) -> Tensor:
        """Entropy of a batch; the arguments are those of :meth:`mmssl.models.losses.ADRLoss.forward`."""
        logits = self.choose_logits(logits, margin_free_logits)
        valid = self.valid_pixels(logits, label, weight, ignore_index)
        reduction = self.choose_reduction(reduction_override, avg_factor)
        with torch.autocast(device_type=logits.device.type, enabled=False):
            logits = logits.to(compute_dtype(logits))
            if valid is not None:
                # Before, not after: NaN in the padding would come back as the gradient 0 * NaN.
                logits = logits.masked_fill(~valid.unsqueeze(1), 0)
            loss = entropy(logits)
            with torch.no_grad():
                counted = loss if valid is None else loss.masked_fill(~valid, 0)
                count = max(loss.numel(), 1) if valid is None else valid.sum().clamp(min=1)
                self.statistics = {'entropy': counted.sum() / count}
            return self.reduce_pixels(loss, logits, weight, valid, reduction, avg_factor)
