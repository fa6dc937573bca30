"""What the losses between a student's and a teacher's logits share: arguments, checks, reduction and statistics."""

import torch
from torch import Tensor

from mmssl.functional.fpl import check_pixel_inputs, compute_dtype, mean_denominator

from .base_loss import BaseLoss


class PseudoLabelLoss(BaseLoss):
    """Base of the losses that any semi-supervised model takes as its ``unsup_loss``.

    A subclass implements :meth:`pixel_loss`; :meth:`forward` gives all of them one contract. The denominator of
    ``reduction='mean'`` is the number of valid pixels, those that the method leaves out (below a threshold) included,
    or ``avg_factor``.

    Args:
        loss_weight: Factor of the loss, finite.
        reduction: ``'mean'``, ``'sum'`` or ``'none'``.
        loss_name: Key of the loss in mmseg's log; must contain ``loss`` to be summed into the total.
    """

    def __init__(self, loss_weight: float = 1., reduction: str = 'mean', loss_name: str = 'loss_pseudo') -> None:
        super().__init__(loss_weight, reduction, loss_name)

    def pixel_loss(self, logits: Tensor, target_logits: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss of each pixel, (N, *), and maps, (N, *), whose means over valid pixels are the statistics.

        Args:
            logits: Student logits, float32 or float64, (N, C, *).
            target_logits: Teacher logits, same dtype and shape, detached.
        """
        raise NotImplementedError

    def forward(self,
                logits: Tensor,
                target_logits: Tensor,
                weight: Tensor | None = None,
                valid: Tensor | None = None,
                avg_factor: float | Tensor | None = None,
                reduction_override: str | None = None) -> Tensor:
        """Loss of the student against the teacher.

        Args:
            logits: Student logits, float, (N, C, *), C >= 2.
            target_logits: Teacher logits at the same pixels, same shape; detached here.
            weight: Factor of each pixel, (N, *); no gradient flows to it.
            valid: Pixels that count, bool, (N, *). The others are in no sum and no mean, whatever their logits.
            avg_factor: Denominator of ``'mean'`` in place of the number of valid pixels.
            reduction_override: Replaces ``reduction`` in this call.

        Returns:
            Scalar, or (N, *) for ``'none'``. With no valid pixel exactly 0, attached to the graph.

        Raises:
            ValueError: Fewer than two classes, or shapes that do not fit.
        """
        check_pixel_inputs(self.config_name, logits, target_logits, weight, valid)
        reduction = self.choose_reduction(reduction_override, avg_factor)
        dtype = compute_dtype(logits, target_logits)
        with torch.autocast(device_type=logits.device.type, enabled=False):
            logits, target_logits = logits.to(dtype), target_logits.detach().to(dtype)
            if valid is not None:
                # Before the loss, not after it: NaN in the padding would come back as the gradient 0 * NaN.
                logits = logits.masked_fill(~valid.unsqueeze(1), 0)
            loss, maps = self.pixel_loss(logits, target_logits)
            self.statistics = valid_means(maps, valid)
            if weight is not None:
                loss = loss * weight.detach()
            if valid is not None:
                loss = loss.masked_fill(~valid, 0)
            denominator = mean_denominator(logits, valid, reduction, avg_factor, dtype)
            return self.loss_weight * (loss if denominator is None else loss.sum() / denominator)


def valid_means(maps: dict[str, Tensor], valid: Tensor | None) -> dict[str, Tensor]:
    """Detached mean over valid pixels of each map (N, *); 0 where there is none."""
    means = {}
    for key, values in maps.items():
        values = values.detach().to(compute_dtype(values))
        if valid is not None:
            values = values.masked_fill(~valid, 0)
        count = values.numel() if valid is None else valid.sum().clamp(min=1)
        means[key] = values.sum() / max(count, 1) if isinstance(count, int) else values.sum() / count
    return means
