"""Cross entropy against the teacher's whole softmax, a loss that FPL is compared with."""

import torch
from torch import Tensor

from mmssl.functional.fpl import soft_pseudo_label_loss
from mmssl.registry import MODELS

from .pixel_loss import PixelLoss


@MODELS.register_module()
class SoftPseudoLabelLoss(PixelLoss):
    """Soft loss of FPL's appendix: the target is the teacher's softmax, without temperature.

    Args:
        loss_weight: Factor of the result.
        reduction: See :class:`PixelLoss`.
        loss_name: Key in the log.

    ``statistics``: ``mask_ratio``, always 1.
    """

    def __init__(self, loss_weight: float = 1.0, reduction: str = 'mean', loss_name: str = 'loss_soft') -> None:
        super().__init__(loss_weight, reduction, loss_name)

    def pixel_loss(self, logits: Tensor, target_logits: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """See :class:`PixelLoss`."""
        loss = soft_pseudo_label_loss(logits, target_logits)
        return loss, dict(mask_ratio=torch.ones_like(loss))
