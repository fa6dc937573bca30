"""CRDPLLLoss: low probability outside the sets, and all views alike, with targets that are their geometric mean."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from mmssl.functional.partial_label import (
    candidate_kl,
    complementary_loss,
    geometric_mean_targets,
    progressive_schedule,
)
from mmssl.registry import MODELS

from .objective import PartialLabelBatch, PartialLabelObjective


@MODELS.register_module()
class CRDPLLLoss(PartialLabelObjective):
    r"""Consistency regularization on discrepancy, CRDPLL (Wu et al., ICML 2022).

    .. math:: L = -\sum_{c \notin S} \log(1 - p_c) + \lambda \sum_v KL(W \,\|\, p_v), \qquad
              \text{then } W_c \propto S_c \prod_v p_{v,c}^{1/V}

    The first term is of the first view, the second of all V. W, one row for each sample of the data set, begins uniform
    on the candidates. :math:`\lambda` rises from 0 to ``weight``, linearly.

    Args:
        num_classes: C; the classifier sets it.
        weight: :math:`\lambda` after the ramp, >= 0. Default: 1.
        ramp: Iterations in which it rises, >= 0. Default: ``None``, half of the training.
        branches: Views that the student is trained on; the paper has one weak and two strong ones.
            Default: ``('unsup_weak', 'unsup_strong')``.

    Raises:
        ValueError: An argument is out of its range.
    """

    START: ClassVar[str] = 'candidates'
    REQUIRED_BRANCHES: ClassVar[tuple[str, ...]] = ('unsup_weak', 'unsup_strong')

    def __init__(
        self,
        num_classes: int,
        weight: float = 1.0,
        ramp: int | None = None,
        branches: Sequence[str] = REQUIRED_BRANCHES,
    ) -> None:
        super().__init__(num_classes, branches)
        self.check_number('weight', weight, lambda value: 0 <= value < float('inf'), 'a finite number >= 0')
        if ramp is not None:
            self.check_number('ramp', ramp, lambda count: count >= 0, 'None or an integer >= 0', int)
        self.weight, self.ramp = weight, ramp

    def forward(self, batch: PartialLabelBatch) -> tuple[dict[str, Tensor], Tensor]:
        """``complementary_loss`` and ``consistency_loss``; see :meth:`PartialLabelObjective.forward`."""
        views = [batch.logits[branch] for branch in self.branches]
        ramp = self.ramp if self.ramp is not None else self.training_length('ramp') / 2
        weight = progressive_schedule(batch.iteration, 0, ramp, self.weight)
        old = self.targets.read(batch.sample_ids, batch.candidates)
        everything = torch.ones_like(batch.candidates)
        consistency = sum(candidate_kl(old, view, everything) for view in views)
        losses = dict(
            complementary_loss=complementary_loss(views[0], batch.candidates).mean(),
            consistency_loss=weight * consistency.mean(),
        )
        log_probs = torch.stack([view.detach().log_softmax(dim=1) for view in views])
        targets = geometric_mean_targets(log_probs, batch.candidates)
        self.targets.write(batch.sample_ids, targets)
        return losses, targets
