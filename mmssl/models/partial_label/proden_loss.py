"""PRODENLoss: cross entropy with targets that follow the model's own probabilities among the candidates."""

from typing import ClassVar

from torch import Tensor

from mmssl.functional.partial_label import candidate_probs, soft_cross_entropy
from mmssl.registry import MODELS

from .objective import PartialLabelBatch, PartialLabelObjective


@MODELS.register_module()
class PRODENLoss(PartialLabelObjective):
    r"""PRODEN (Lv et al., ICML 2020), and RC (Feng et al., NeurIPS 2020), whose loss is the same.

    .. math:: L = -\sum_c W_c \log p_c, \qquad \text{then } W_c \leftarrow S_c\, p_c / \sum_{c'} S_{c'} p_{c'}

    W, one row for each sample of the data set, begins uniform on the candidates and is replaced by the probabilities of
    the same forward. With ``semi_train_cfg.teacher='ema'`` these are the teacher's, on the weak view.

    Args:
        num_classes: C; the classifier sets it.
        branch: View that the student is trained on. Default: ``'unsup_weak'``.
    """

    START: ClassVar[str] = 'candidates'
    TEACHER: ClassVar[str] = 'optional'

    def __init__(self, num_classes: int, branch: str = 'unsup_weak') -> None:
        super().__init__(num_classes, (branch,))

    def forward(self, batch: PartialLabelBatch) -> tuple[dict[str, Tensor], Tensor]:
        """``prediction_loss``; see :meth:`PartialLabelObjective.forward`."""
        logits = batch.logits[self.branches[0]]
        loss = soft_cross_entropy(logits, self.targets.read(batch.sample_ids, batch.candidates)).mean()
        source = logits if batch.teacher_logits is None else batch.teacher_logits
        targets = candidate_probs(source.detach(), batch.candidates)
        self.targets.write(batch.sample_ids, targets)
        return dict(prediction_loss=loss), targets
