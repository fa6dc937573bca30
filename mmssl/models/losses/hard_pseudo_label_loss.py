"""Cross entropy against the teacher's most probable class: the loss of CPS."""

from torch import Tensor

from mmssl.functional.fpl import hard_pseudo_label_loss
from mmssl.registry import MODELS

from .pixel_loss import PixelLoss


@MODELS.register_module()
class HardPseudoLabelLoss(PixelLoss):
    """Vanilla positive learning (FPL, Eq. 2), for pixels whose teacher is confident enough.

    Args:
        threshold: Least probability of the teacher's first class for a pixel to have a loss, in [0, 1]. A pixel below
            it still counts in the mean. Default 0, every pixel, as in CPS.
        loss_weight: Factor of the result.
        reduction: See :class:`PixelLoss`.
        loss_name: Key in the log.

    ``statistics``: ``mask_ratio``, the share of pixels at or above the threshold.

    Raises:
        ValueError: If ``threshold`` is outside [0, 1].
    """

    def __init__(
        self, threshold: float = 0.0, loss_weight: float = 1.0, reduction: str = 'mean', loss_name: str = 'loss_hard'
    ) -> None:
        super().__init__(loss_weight, reduction, loss_name)
        self.threshold = self.check_range('threshold', threshold, 0, 1)

    def pixel_loss(self, logits: Tensor, target_logits: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """See :class:`PixelLoss`."""
        loss = hard_pseudo_label_loss(logits, target_logits)
        if self.threshold == 0:
            return loss, dict(mask_ratio=loss.new_ones(loss.shape))
        selected = target_logits.softmax(dim=1).amax(dim=1) >= self.threshold
        return loss * selected, dict(mask_ratio=selected)
