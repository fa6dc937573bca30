"""LWSLoss: a binary loss for each label, weighted among the candidates and among the others apart."""

from typing import ClassVar

from torch import Tensor

from mmssl.functional.partial_label import leveraged_weighted_loss, leveraged_weights
from mmssl.registry import MODELS

from .objective import PartialLabelBatch, PartialLabelObjective, on_candidates


@MODELS.register_module()
class LWSLoss(PartialLabelObjective):
    r"""Leveraged weighted loss, LWS (Wen et al., ICML 2021).

    .. math:: L = \sum_{c \in S} w_c\, \psi(z_c) + \beta \sum_{c \notin S} w_c\, \psi(-z_c)

    w, one row for each sample of the data set, begins as 1/C and is replaced by the softmax of the same forward,
    normalized among the candidates and among the other labels apart.

    Args:
        num_classes: C; the classifier sets it.
        beta: Weight of the labels outside, >= 0; 1 or 2 in the paper. Default: 1.
        kind: ``'sigmoid'``, :math:`\psi(z) = 1 / (1 + e^z)`; or ``'cross_entropy'`` (LWC), :math:`-\log p_c` inside and
            :math:`-\log(1 - p_c)` outside. Default: ``'sigmoid'``.
        branch: View that the student is trained on. Default: ``'unsup_weak'``.

    Raises:
        ValueError: An argument is out of its range.
    """

    START: ClassVar[str] = 'all'

    def __init__(
        self, num_classes: int, beta: float = 1.0, kind: str = 'sigmoid', branch: str = 'unsup_weak'
    ) -> None:
        super().__init__(num_classes, (branch,))
        self.check_number('beta', beta, lambda value: 0 <= value < float('inf'), 'a finite number >= 0')
        self.check_choice('kind', kind, ('sigmoid', 'cross_entropy'))
        self.beta, self.kind = beta, kind

    def forward(self, batch: PartialLabelBatch) -> tuple[dict[str, Tensor], Tensor]:
        """``prediction_loss``; see :meth:`PartialLabelObjective.forward`."""
        logits = batch.logits[self.branches[0]]
        weights = self.targets.read(batch.sample_ids, batch.candidates)
        loss = leveraged_weighted_loss(logits, batch.candidates, weights, self.beta, self.kind).mean()
        weights = leveraged_weights(logits.detach(), batch.candidates)
        self.targets.write(batch.sample_ids, weights)
        return dict(prediction_loss=loss), on_candidates(weights, batch.candidates)
