"""CAVLLoss: cross entropy with the candidate of the largest class activation value."""

from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor

from mmssl.functional.partial_label import class_activation_labels, soft_cross_entropy
from mmssl.registry import MODELS

from .objective import PartialLabelBatch, PartialLabelObjective


@MODELS.register_module()
class CAVLLoss(PartialLabelObjective):
    r"""Class activation value learning, CAVL (Zhang et al., ICLR 2022).

    The target of a sample is uniform on its candidates when it is seen for the first time; later it is the candidate
    with the largest :math:`|z_c - 1| z_c`, z being the logits of its last forward before this one.

    Args:
        num_classes: C; the classifier sets it.
        branch: View that the student is trained on. Default: ``'unsup_weak'``.
    """

    START: ClassVar[str] = 'candidates'

    def __init__(self, num_classes: int, branch: str = 'unsup_weak') -> None:
        super().__init__(num_classes, (branch,))

    def forward(self, batch: PartialLabelBatch) -> tuple[dict[str, Tensor], Tensor]:
        """``prediction_loss``; see :meth:`PartialLabelObjective.forward`."""
        logits = batch.logits[self.branches[0]]
        loss = soft_cross_entropy(logits, self.targets.read(batch.sample_ids, batch.candidates)).mean()
        labels = class_activation_labels(logits.detach(), batch.candidates)
        targets = F.one_hot(labels, self.num_classes).to(logits.dtype)
        self.targets.write(batch.sample_ids, targets)
        return dict(prediction_loss=loss), targets
