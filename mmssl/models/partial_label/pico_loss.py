"""PiCOLoss: contrastive learning with predicted candidates, whose prototypes make the targets."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from mmengine.dist import get_rank, get_world_size
from torch import Tensor, nn

from mmssl.functional.partial_label import (
    candidate_probs,
    info_nce_loss,
    moved_prototypes,
    prototype_targets,
    soft_cross_entropy,
    supervised_contrastive_loss,
)
from mmssl.models.thresholds.batch import gather_batch, gather_in_order
from mmssl.registry import MODELS

from .objective import PartialLabelBatch, PartialLabelObjective


@MODELS.register_module()
class PiCOLoss(PartialLabelObjective):
    r"""Contrastive label disambiguation, PiCO (Wang et al., ICLR 2022).

    Student and teacher project their features to unit vectors, q of the student's view and k of the teacher's. With
    :math:`\hat y` the likeliest candidate of the student, in this order:

    1. each q moves the prototype of its class, :math:`\mu_{\hat y} \leftarrow norm((1 - m) \mu_{\hat y} + m q)`;
    2. from ``prot_start`` on, :math:`W \leftarrow \phi W + (1 - \phi)\, onehot(\arg\max_{c \in S} q \cdot \mu_c)`, one
       row for each sample of the data set, uniform on the candidates at first;
    3. :math:`L = -\sum_c W_c \log p_c + \lambda L_{cont}`. :math:`L_{cont}` contrasts q with all q, k and the queue,
       positives being those with the same :math:`\hat y`; before ``prot_start``, q with its own k, and the queue;
    4. k and :math:`\hat y` enter the queue.

    It needs ``semi_train_cfg.teacher='ema'``; ``mmssl.MeanTeacherHook`` updates the teacher's projection as well.
    Contrasts are those of all processes. The queue is empty at first; what is not there is no contrast.

    Args:
        num_classes: C; the classifier sets it.
        in_channels: Features; the classifier sets it.
        embed_dims: Of q and k. Default: 128.
        hidden_dims: Of the projection's hidden layer. Default: ``None``, ``in_channels``.
        queue_size: Largest number of k that are kept, >= 1. Default: 8192.
        temperature: :math:`\tau` > 0. Default: 0.07.
        weight: :math:`\lambda` >= 0. Default: 0.5.
        prototype_momentum: m, weight of a sample, in (0, 1]: a paper's 0.99 is 0.01. Default: 0.01.
        keep: :math:`\phi` at the start and at the end, in [0, 1]. Default: ``(0.95, 0.8)``.
        keep_ramp: Iterations in which it goes linearly from one to the other, >= 1. Default: ``None``, the training.
        prot_start: First iteration with prototypes, >= 0. Default: ``None``, after one pass over the data.
        branch: View that the student is trained on; the teacher's is ``'unsup_strong'``. Default: ``'unsup_weak'``.

    Raises:
        ValueError: An argument is out of its range.
    """

    START: ClassVar[str] = 'candidates'
    TEACHER: ClassVar[str] = 'always'
    TEACHER_BRANCH: ClassVar[str] = 'unsup_strong'
    READS_FEATURES: ClassVar[bool] = True

    def __init__(
        self,
        num_classes: int,
        in_channels: int,
        embed_dims: int = 128,
        hidden_dims: int | None = None,
        queue_size: int = 8192,
        temperature: float = 0.07,
        weight: float = 0.5,
        prototype_momentum: float = 0.01,
        keep: Sequence[float] = (0.95, 0.8),
        keep_ramp: int | None = None,
        prot_start: int | None = None,
        branch: str = 'unsup_weak',
    ) -> None:
        super().__init__(num_classes, (branch,))
        hidden_dims = in_channels if hidden_dims is None else hidden_dims
        sizes = dict(in_channels=in_channels, embed_dims=embed_dims, hidden_dims=hidden_dims, queue_size=queue_size)
        for key, value in sizes.items():
            self.check_number(key, value, lambda size: size >= 1, 'an integer >= 1', int)
        self.check_number('temperature', temperature, lambda value: 0 < value < float('inf'), 'finite, > 0')
        self.check_number('weight', weight, lambda value: 0 <= value < float('inf'), 'a finite number >= 0')
        self.check_number('prototype_momentum', prototype_momentum, lambda value: 0 < value <= 1, 'in (0, 1]')
        if not isinstance(keep, (list, tuple)) or len(keep) != 2:
            raise ValueError(f'mmssl.PiCOLoss: `keep` must be two numbers, at the start and at the end, got {keep!r}')
        for value in keep:
            self.check_number('keep', value, lambda share: 0 <= share <= 1, 'in [0, 1]')
        for key, value, least in (('keep_ramp', keep_ramp, 1), ('prot_start', prot_start, 0)):
            if value is not None:
                self.check_number(key, value, lambda count, n=least: count >= n, f'None or an integer >= {least}', int)
        self.temperature, self.weight, self.prototype_momentum = temperature, weight, prototype_momentum
        self.keep, self.keep_ramp, self.prot_start = tuple(keep), keep_ramp, prot_start
        self.projection = nn.Sequential(
            nn.Linear(in_channels, hidden_dims), nn.ReLU(), nn.Linear(hidden_dims, embed_dims)
        )
        self.teacher_projection = deepcopy(self.projection).requires_grad_(False)
        self.register_buffer('prototypes', torch.zeros(num_classes, embed_dims))
        self.register_buffer('queue', torch.zeros(queue_size, embed_dims))
        self.register_buffer('queue_labels', torch.full((queue_size,), -1))
        # Samples that entered so far; the host's copy keeps the GPU from being read.
        self.register_buffer('enqueued', torch.zeros((), dtype=torch.long))
        self._host_enqueued: int | None = None

    def averaged_modules(self) -> list[tuple[nn.Module, nn.Module]]:
        """The teacher's projection follows the student's."""
        return [(self.teacher_projection, self.projection)]

    def forward(self, batch: PartialLabelBatch) -> tuple[dict[str, Tensor], Tensor]:
        """``prediction_loss`` and ``contrastive_loss``; see :meth:`PartialLabelObjective.forward`."""
        branch = self.branches[0]
        logits, candidates = batch.logits[branch], batch.candidates
        q = F.normalize(self.projection(batch.features[branch]), dim=1)
        with torch.no_grad():
            k = F.normalize(self.teacher_projection(batch.teacher_features), dim=1)
            labels = candidate_probs(logits, candidates).argmax(dim=1)
            all_k, all_labels = gather_in_order(k), gather_in_order(labels)
            self.prototypes.copy_(
                moved_prototypes(self.prototypes, gather_in_order(q), all_labels, self.prototype_momentum)
            )
        targets = self.targets.read(batch.sample_ids, candidates).to(logits.dtype)
        queue, queue_labels = self._queued()
        if batch.iteration < self._first():
            contrast = info_nce_loss(q, k, queue, self.temperature)
        else:
            targets = prototype_targets(targets, q.detach(), self.prototypes, candidates, self._keep(batch.iteration))
            self.targets.write(batch.sample_ids, targets)
            others, other_labels = gather_others(q, labels)
            contrast_labels = torch.cat([labels, other_labels, all_labels, queue_labels])
            contrast = supervised_contrastive_loss(
                q, torch.cat([q, others, all_k, queue]), labels[:, None] == contrast_labels, self.temperature
            )
        losses = dict(
            prediction_loss=soft_cross_entropy(logits, targets).mean(), contrastive_loss=self.weight * contrast.mean()
        )
        self._enqueue(all_k, all_labels)
        return losses, targets

    @torch.no_grad()
    def reset(self) -> None:
        """Forget targets, prototypes and queue."""
        super().reset()
        self.prototypes.zero_()
        self.queue.zero_()
        self.queue_labels.fill_(-1)
        self.enqueued.zero_()
        self._host_enqueued = 0

    def _first(self) -> int:
        """First iteration with prototypes."""
        return self.epoch_length('prot_start') if self.prot_start is None else self.prot_start

    def _keep(self, iteration: int) -> float:
        """Present share of the old targets."""
        ramp = self.training_length('keep_ramp') if self.keep_ramp is None else self.keep_ramp
        first, last = self.keep
        return first + (last - first) * min(1.0, iteration / ramp)

    def _num_enqueued(self) -> int:
        if self._host_enqueued is None:
            self._host_enqueued = int(self.enqueued)
        return self._host_enqueued

    def _queued(self) -> tuple[Tensor, Tensor]:
        """What is in the queue, (M, D), and its labels, (M,); a copy, since the loss is differentiated later."""
        filled = min(self._num_enqueued(), len(self.queue))
        return self.queue[:filled].clone(), self.queue_labels[:filled].clone()

    @torch.no_grad()
    def _enqueue(self, keys: Tensor, labels: Tensor) -> None:
        size, count = len(self.queue), self._num_enqueued()
        total = count + len(keys)
        keys, labels = keys[-size:], labels[-size:]
        slots = torch.arange(total - len(keys), total, device=keys.device) % size
        self.queue[slots], self.queue_labels[slots] = keys.to(self.queue.dtype), labels
        self._host_enqueued = total
        self.enqueued.fill_(total)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self._host_enqueued = None


def gather_others(embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The embeddings of the other processes, with gradient, and their labels.

    Args:
        embeddings: Shape (N, D); the same N in every process.
        labels: Int64, shape (N,).

    Returns:
        Shapes (N * (processes - 1), D) and (N * (processes - 1),).
    """
    if get_world_size() == 1:
        return embeddings[:0], labels[:0]
    from torch.distributed.nn.functional import all_gather

    rank, parts = get_rank(), all_gather(embeddings.contiguous())
    others = [part for other, part in enumerate(parts) if other != rank]
    kept = [part for other, part in enumerate(gather_batch(labels).split(len(labels))) if other != rank]
    return torch.cat(others), torch.cat(kept)
