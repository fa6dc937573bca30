"""SoftPseudoLabelLoss: cross entropy against the teacher's whole softmax."""

import torch
from torch import Tensor

from mmssl.functional.fpl import soft_pseudo_label_loss
from mmssl.registry import MODELS

from .pseudo_label_loss import PseudoLabelLoss


@MODELS.register_module()
class SoftPseudoLabelLoss(PseudoLabelLoss):
    r"""Soft loss of the FPL paper's appendix: :math:`L^s = -\sum_c p_c \log \mathrm{softmax}(z)_c`, no temperature.

    ``statistics`` after a call: ``mask_ratio``, 1 (every valid pixel is used).

    Args:
        loss_weight: Factor of the loss.
        reduction: ``'mean'`` over valid pixels, ``'sum'`` or ``'none'``.
        loss_name: Key of the loss in mmseg's log.
    """

    def __init__(self, loss_weight: float = 1., reduction: str = 'mean', loss_name: str = 'loss_soft') -> None:
        super().__init__(loss_weight=loss_weight, reduction=reduction, loss_name=loss_name)

    def pixel_loss(self, logits: Tensor, target_logits: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss of each pixel."""
        loss = soft_pseudo_label_loss(logits, target_logits)
        return loss, {'mask_ratio': torch.ones_like(loss)}
