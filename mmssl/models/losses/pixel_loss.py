"""The interface that all unsupervised losses share: reduction over valid pixels, and statistics for the log."""

from abc import abstractmethod

import torch
from torch import Tensor, nn

from mmssl.functional.fpl import check_pixel_inputs, compute_dtype, mean_denominator


class PixelLoss(nn.Module):
    """A loss between the logits of a student and those that make its pseudo labels.

    A sub-class computes the loss of each pixel; this class checks shapes, computes in float32, and reduces. The names
    and the order of ``weight``, ``avg_factor`` and ``reduction_override`` are those of mmseg's and mmpretrain's losses.

    Args:
        loss_weight: Factor of the result. Default 1.
        reduction: ``'mean'`` over valid pixels, ``'sum'`` or ``'none'``. Default ``'mean'``.
        loss_name: Key of the loss in mmseg's log; must contain ``loss``.

    Raises:
        ValueError: If ``reduction`` is unknown or ``loss_name`` lacks ``loss``.
    """

    def __init__(self, loss_weight: float = 1.0, reduction: str = 'mean', loss_name: str = 'loss_unsup') -> None:
        super().__init__()
        if reduction not in ('mean', 'sum', 'none'):
            raise ValueError(f"{self.title}: `reduction` must be 'mean', 'sum' or 'none', got {reduction!r}")
        if 'loss' not in loss_name:
            raise ValueError(
                f'{self.title}: `loss_name` must contain "loss", or mmengine leaves it out of the sum, got {loss_name!r}'
            )
        self.loss_weight = loss_weight
        self.reduction = reduction
        self.loss_name = loss_name
        self.statistics: dict[str, Tensor] = {}

    @property
    def title(self) -> str:
        """Name in messages."""
        return f'mmssl.{type(self).__name__}'

    def check_range(self, name: str, value: float, low: float, high: float, low_open: bool = False) -> float:
        """``value``, or ValueError unless it is a number in [low, high] (or (low, high])."""
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not (low < value if low_open else low <= value) or not value <= high:
            interval = f'{"(" if low_open else "["}{low}, {high}]'
            raise ValueError(f'{self.title}: `{name}` must be in {interval}, got {value!r}')
        return float(value)

    @abstractmethod
    def pixel_loss(self, logits: Tensor, target_logits: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss of each pixel, (N, *), and per-pixel values, (N, *), whose means over valid pixels are statistics."""

    def forward(
        self,
        logits: Tensor,
        target_logits: Tensor,
        weight: Tensor | None = None,
        valid: Tensor | None = None,
        avg_factor: float | Tensor | None = None,
        reduction_override: str | None = None,
    ) -> Tensor:
        """Reduced loss; afterwards ``self.statistics`` holds detached scalars about the batch.

        Args:
            logits: Student logits, float, (N, C, *), C >= 2.
            target_logits: Logits that make the pseudo labels, same shape; no gradient flows to them.
            weight: Further factor of each pixel, (N, *).
            valid: Pixels that count, bool, (N, *). Default: all.
            avg_factor: Denominator of ``'mean'`` in place of the number of valid pixels.
            reduction_override: Replaces ``reduction`` for this call.

        Returns:
            A scalar, or (N, *) for ``'none'``. With no valid pixel exactly 0, attached to the graph.

        Raises:
            ValueError: If shapes or dtypes do not fit.
        """
        check_pixel_inputs(self.title, logits, target_logits, weight, valid)
        reduction = reduction_override or self.reduction
        dtype = compute_dtype(logits, target_logits)
        denominator = mean_denominator(logits, valid, reduction, avg_factor, dtype)
        with torch.autocast(device_type=logits.device.type, enabled=False):
            loss, values = self.pixel_loss(logits.to(dtype), target_logits.detach().to(dtype))
            if weight is not None:
                loss = loss * weight.detach()
            if valid is not None:
                loss = loss.masked_fill(~valid, 0)
            self.statistics = {name: valid_mean(value, valid) for name, value in values.items()}
            loss = loss if denominator is None else loss.sum() / denominator
            return loss * self.loss_weight


def valid_mean(values: Tensor, valid: Tensor | None) -> Tensor:
    """Detached mean of ``values`` over ``valid`` pixels; 0 if there is none.

    Args:
        values: Any dtype, (N, *).
        valid: Bool, (N, *), or ``None`` for all.
    """
    values = values.detach().to(torch.float32 if values.dtype != torch.float64 else values.dtype)
    if valid is None:
        return values.sum() / max(values.numel(), 1)
    return values.masked_fill(~valid, 0).sum() / valid.sum().clamp(min=1)
