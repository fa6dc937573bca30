"""What the losses share that stand beside cross entropy in a head: its arguments, and what its labels may be."""

from typing import Any

import torch
from torch import Tensor

from mmssl.functional.fpl import check_logits, mean_denominator

from .base_loss import BaseLoss, sum_over_ranks

# On a GPU the sums of soft targets are looked at this many times, since each look waits for the device.
LOOKS = 10


class LabelLoss(BaseLoss):
    """Base of the losses that are called as those of mmseg's and mmpretrain's heads.

    Labels are class indices, (N, *), or soft targets, (N, C, *), such as those of mixup and cutmix.

    Attributes:
        margin_logits: Whether the loss is on the logits with margin, of heads that have both kinds.

    Args:
        loss_weight: Factor of the loss, finite.
        reduction: ``'mean'``, ``'sum'`` or ``'none'``.
        loss_name: Key of the loss in mmseg's log; must contain ``loss`` to be summed into the total.
    """

    margin_logits = True

    def __init__(self, loss_weight: float, reduction: str, loss_name: str) -> None:
        super().__init__(loss_weight, reduction, loss_name)
        self.looks = 0

    def choose_logits(self, logits: Tensor, margin_free_logits: Tensor | None) -> Tensor:
        """The logits that ``margin_logits`` asks for.

        Raises:
            ValueError: If the head gives none without margin.
        """
        if self.margin_logits:
            return logits
        if margin_free_logits is None:
            raise ValueError(f'{self.config_name}: `margin_logits=False` needs a head that gives its logits without '
                             'margin as well: mmssl.ArcFaceClsHead or mmssl.CosFaceClsHead')
        return margin_free_logits

    def valid_pixels(self, logits: Tensor, label: Tensor | None, weight: Tensor | None,
                     ignore_index: int | None) -> Tensor | None:
        """Check the arguments of one call and find the pixels that count.

        Args:
            logits: (N, C, *).
            label: Class indices, (N, *); soft targets, (N, C, *); or None.
            weight: (N, *), or None.
            ignore_index: Label of pixels that do not count; None for none.

        Returns:
            Bool, (N, *), or None if all count.

        Raises:
            ValueError: If something does not fit, or if the labels are multi-label.
        """
        check_logits(self.config_name, logits, weight)
        if label is None:
            return None
        if label.shape == logits.shape:
            self.check_soft_targets(label)
            return None
        pixels = tuple(logits.shape[:1] + logits.shape[2:])
        if tuple(label.shape) != pixels:
            raise ValueError(f'{self.config_name}: `label` must be class indices {pixels} or soft targets '
                             f'{tuple(logits.shape)}, got shape {tuple(label.shape)}')
        return None if ignore_index is None or label.is_floating_point() else label != ignore_index

    def check_soft_targets(self, targets: Tensor) -> None:
        """Soft targets sum to 1; multi-label ones, whose classes do not exclude each other, do not.

        Raises:
            ValueError: If some do not.
        """
        if targets.device.type != 'cpu' and self.looks >= LOOKS:
            return
        self.looks += 1
        sums = targets.detach().sum(dim=1, dtype=torch.float32)
        wrong = (sums - 1).abs() > 1e-2
        if bool(wrong.any()):
            raise ValueError(f'{self.config_name} is a loss on a softmax, whose classes exclude each other: the '
                             f'targets of a sample must sum to 1, found {sums[wrong][0].item():.3g}; multi-label heads '
                             'can not have it')

    def reduce_pixels(self, loss: Tensor, logits: Tensor, weight: Tensor | None, valid: Tensor | None, reduction: str,
                      avg_factor: float | Tensor | None) -> Tensor:
        """Reduce the loss of each pixel.

        The denominator of ``'mean'`` is the number of valid pixels, as a mean over all processes: so the mean of their
        gradients is the gradient of one process with the whole batch, however the ignored pixels are spread.

        Args:
            loss: (N, *).
            logits: (N, C, *).
            weight: Factor of each pixel, (N, *).
            valid: Pixels that count, bool, (N, *).
            reduction: ``'mean'``, ``'sum'`` or ``'none'``.
            avg_factor: Replaces the denominator of ``'mean'``.
        """
        if weight is not None:
            loss = loss * weight.detach().to(loss.dtype)
        if valid is not None:
            loss = loss.masked_fill(~valid, 0)
        denominator = mean_denominator(logits, valid, reduction, avg_factor, loss.dtype)
        if reduction == 'mean' and avg_factor is None and valid is not None:
            count = valid.sum().to(loss.dtype)
            count, processes = sum_over_ranks(torch.stack([count, torch.ones_like(count)]))
            denominator = (count / processes).clamp(min=torch.finfo(loss.dtype).eps)
        return self.loss_weight * (loss if denominator is None else loss.sum() / denominator)

    def forward(self, logits: Tensor, label: Tensor | None = None, weight: Tensor | None = None,
                ignore_index: int | None = None, avg_factor: float | Tensor | None = None,
                reduction_override: str | None = None, **kwargs: Any) -> Tensor:
        """Loss of a batch."""
        raise NotImplementedError
