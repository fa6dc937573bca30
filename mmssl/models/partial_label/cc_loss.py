"""CCLoss: the probability of the candidate set as a whole."""

from torch import Tensor

from mmssl.functional.partial_label import candidate_probs, classifier_consistent_loss
from mmssl.registry import MODELS

from .objective import PartialLabelBatch, PartialLabelObjective


@MODELS.register_module()
class CCLoss(PartialLabelObjective):
    r"""Classifier-consistent learning, CC (Feng et al., NeurIPS 2020): :math:`-\log \sum_{c \in S} p_c`.

    There are no targets; those that are reported are the probabilities restricted to the candidates, which weight the
    gradient.

    Args:
        num_classes: C; the classifier sets it.
        branch: View that the student is trained on. Default: ``'unsup_weak'``.
    """

    def __init__(self, num_classes: int, branch: str = 'unsup_weak') -> None:
        super().__init__(num_classes, (branch,))

    def forward(self, batch: PartialLabelBatch) -> tuple[dict[str, Tensor], Tensor]:
        """``prediction_loss``; see :meth:`PartialLabelObjective.forward`."""
        logits = batch.logits[self.branches[0]]
        loss = classifier_consistent_loss(logits, batch.candidates).mean()
        return dict(prediction_loss=loss), candidate_probs(logits.detach(), batch.candidates)
