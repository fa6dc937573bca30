"""HardPseudoLabelLoss: cross entropy against the teacher's most probable class, with a confidence threshold."""

import torch
from torch import Tensor

from mmssl.functional.fpl import hard_pseudo_label_loss
from mmssl.registry import MODELS

from .pseudo_label_loss import PseudoLabelLoss


@MODELS.register_module()
class HardPseudoLabelLoss(PseudoLabelLoss):
    """Vanilla positive learning (Eq. 2 of the FPL paper), what CPS trains with.

    Pixels whose teacher's largest probability is below ``threshold`` have loss 0; they stay in the denominator of
    ``'mean'``, as in FixMatch. ``statistics`` after a call: ``mask_ratio``, share of valid pixels that are used.

    Args:
        threshold: Smallest confidence of a pixel that is used, in [0, 1]. 0 uses all of them.
        loss_weight: Factor of the loss.
        reduction: ``'mean'`` over valid pixels, ``'sum'`` or ``'none'``.
        loss_name: Key of the loss in mmseg's log.

    Raises:
        ValueError: An argument is out of its range.
    """

    def __init__(self,
                 threshold: float = 0.,
                 loss_weight: float = 1.,
                 reduction: str = 'mean',
                 loss_name: str = 'loss_hard') -> None:
        super().__init__(loss_weight=loss_weight, reduction=reduction, loss_name=loss_name)
        self.check_number('threshold', threshold, lambda share: 0 <= share <= 1, 'in [0, 1]')
        self.threshold = threshold

    def pixel_loss(self, logits: Tensor, target_logits: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss of each pixel, and the mask of those that are used."""
        loss = hard_pseudo_label_loss(logits, target_logits)
        if self.threshold == 0:
            return loss, {'mask_ratio': torch.ones_like(loss)}
        used = target_logits.softmax(dim=1).amax(dim=1) >= self.threshold
        return loss.masked_fill(~used, 0), {'mask_ratio': used}
