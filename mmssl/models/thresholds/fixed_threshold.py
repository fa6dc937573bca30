"""FixedThreshold: FixMatch's constant threshold on the confidence."""

import torch
from torch import Tensor

from mmssl.registry import MODELS

from .base import Threshold


@MODELS.register_module()
class FixedThreshold(Threshold):
    r"""Constant threshold (FixMatch, Sohn et al., NeurIPS 2020): weight :math:`1[\max q \ge \tau]`.

    Args:
        num_classes: C; the model sets it.
        threshold: :math:`\tau`, in [0, 1]. 0 uses every pseudo label.

    Raises:
        ValueError: If an argument is out of its range.
    """

    def __init__(self, num_classes: int, threshold: float = 0.95) -> None:
        super().__init__(num_classes, threshold)

    @torch.no_grad()
    def forward(
        self,
        probs: Tensor,
        logits: Tensor | None = None,
        labeled_probs: Tensor | None = None,
        sample_ids: Tensor | None = None,
    ) -> Tensor:
        """Weights in {0, 1}; see :meth:`Threshold.forward`."""
        return (probs.amax(dim=1) >= self.threshold).float()
