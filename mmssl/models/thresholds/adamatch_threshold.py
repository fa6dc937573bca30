"""AdaMatchThreshold: a threshold relative to the confidence on the labeled images of the batch."""

import torch
from torch import Tensor

from mmssl.functional.thresholds import relative_threshold
from mmssl.registry import MODELS

from .base import Threshold
from .batch import batch_mean


@MODELS.register_module()
class AdaMatchThreshold(Threshold):
    r"""Relative threshold of AdaMatch (Berthelot et al., ICLR 2022).

    Weight :math:`1[\max q \ge \tau\, \overline{\max p_l}]`, with the mean over the labeled images of the batch in all
    processes.

    Args:
        num_classes: C; the model sets it.
        threshold: :math:`\tau`, in [0, 1].

    Raises:
        ValueError: If an argument is out of its range.
    """

    NEEDS_LABELED = True

    def __init__(self, num_classes: int, threshold: float = 0.95) -> None:
        super().__init__(num_classes, threshold)
        # Only for the log: each batch has its own.
        self._present: Tensor | None = None

    @torch.no_grad()
    def forward(
        self,
        probs: Tensor,
        logits: Tensor | None = None,
        labeled_probs: Tensor | None = None,
        sample_ids: Tensor | None = None,
    ) -> Tensor:
        """Weights in {0, 1}; see :meth:`Threshold.forward`.

        Raises:
            ValueError: Without ``labeled_probs``.
        """
        if labeled_probs is None:
            raise ValueError('mmssl.AdaMatchThreshold: needs `labeled_probs`, got None')
        self._present = relative_threshold(batch_mean(labeled_probs.amax(dim=1)), self.threshold)
        return (probs.amax(dim=1) >= self._present).float()

    def statistics(self) -> dict[str, Tensor]:
        """The threshold of the last batch."""
        return {} if self._present is None else dict(threshold=self._present)
