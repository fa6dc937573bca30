"""ConsistencyMSELoss: squared difference between a student's and a teacher's softmax."""

import torch
from torch import Tensor

from mmssl.registry import MODELS

from .pseudo_label_loss import PseudoLabelLoss


@MODELS.register_module()
class ConsistencyMSELoss(PseudoLabelLoss):
    r"""Consistency of mean teachers (Tarvainen & Valpola, NeurIPS 2017).

    .. math:: L_s = \frac{1}{C} \sum_c \big(\mathrm{softmax}(z)_c - \mathrm{softmax}(t)_c\big)^2

    for student logits z and teacher logits t; no gradient flows to t. ``statistics`` after a call: ``mask_ratio``, 1
    (every valid pixel is used).

    Args:
        loss_weight: Factor of the loss.
        reduction: ``'mean'`` over valid pixels, ``'sum'`` or ``'none'``.
        loss_name: Key of the loss in mmseg's log.
    """

    def __init__(self, loss_weight: float = 1., reduction: str = 'mean', loss_name: str = 'loss_mse') -> None:
        super().__init__(loss_weight=loss_weight, reduction=reduction, loss_name=loss_name)

    def pixel_loss(self, logits: Tensor, target_logits: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss of each pixel."""
        loss = ((logits.softmax(dim=1) - target_logits.softmax(dim=1)) ** 2).mean(dim=1)
        return loss, {'mask_ratio': torch.ones_like(loss)}
