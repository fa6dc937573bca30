"""NegativeLearningLoss: push down the classes that the teacher finds improbable."""

from torch import Tensor

from mmssl.functional.fpl import negative_learning_loss
from mmssl.registry import MODELS

from .pseudo_label_loss import PseudoLabelLoss


@MODELS.register_module()
class NegativeLearningLoss(PseudoLabelLoss):
    r"""Negative learning, as the FPL paper's appendix compares with it.

    .. math:: L^n = -\sum_{j:\, p_j < \tau} \log(1 - \mathrm{softmax}(z)_j)

    A sum over the negative classes of a pixel, a mean over pixels. ``statistics`` after a call: ``mask_ratio``, share
    of valid pixels with at least one negative class.

    Args:
        threshold: tau, in (0, 1].
        loss_weight: Factor of the loss.
        reduction: ``'mean'`` over valid pixels, ``'sum'`` or ``'none'``.
        loss_name: Key of the loss in mmseg's log.

    Raises:
        ValueError: An argument is out of its range.
    """

    def __init__(self,
                 threshold: float = 0.2,
                 loss_weight: float = 1.,
                 reduction: str = 'mean',
                 loss_name: str = 'loss_negative') -> None:
        super().__init__(loss_weight=loss_weight, reduction=reduction, loss_name=loss_name)
        self.check_number('threshold', threshold, lambda tau: 0 < tau <= 1, 'in (0, 1]')
        self.threshold = threshold

    def pixel_loss(self, logits: Tensor, target_logits: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss of each pixel, and the mask of those with a negative class."""
        loss, negative = negative_learning_loss(logits, target_logits, self.threshold)
        return loss, {'mask_ratio': negative.any(dim=1)}
