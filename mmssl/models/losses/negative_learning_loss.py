"""Negative learning: push down the classes that the teacher finds improbable."""

from torch import Tensor

from mmssl.functional.fpl import negative_learning_loss
from mmssl.registry import MODELS

from .pixel_loss import PixelLoss


@MODELS.register_module()
class NegativeLearningLoss(PixelLoss):
    """Negative loss of FPL's appendix, a sum over the negative classes of a pixel.

    Args:
        threshold: Classes below this teacher probability are negative, in (0, 1]. Default 0.2.
        loss_weight: Factor of the result.
        reduction: See :class:`PixelLoss`.
        loss_name: Key in the log.

    ``statistics``: ``mask_ratio``, the share of pixels with at least one negative class; ``num_negatives``, the mean
    number of negative classes.

    Raises:
        ValueError: If ``threshold`` is outside (0, 1].
    """

    def __init__(
        self, threshold: float = 0.2, loss_weight: float = 1.0, reduction: str = 'mean', loss_name: str = 'loss_negative'
    ) -> None:
        super().__init__(loss_weight, reduction, loss_name)
        self.threshold = self.check_range('threshold', threshold, 0, 1, low_open=True)

    def pixel_loss(self, logits: Tensor, target_logits: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """See :class:`PixelLoss`."""
        loss, negative = negative_learning_loss(logits, target_logits, self.threshold)
        count = negative.sum(dim=1)
        return loss, dict(mask_ratio=count > 0, num_negatives=count)
