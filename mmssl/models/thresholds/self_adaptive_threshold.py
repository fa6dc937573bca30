"""SelfAdaptiveThreshold: FreeMatch's thresholds, which follow the model's confidence."""

from collections.abc import Sequence

import torch
from torch import Tensor

from mmssl.functional.thresholds import self_adaptive_thresholds
from mmssl.registry import MODELS

from .base import Threshold
from .batch import batch_mean, gather_batch


@MODELS.register_module()
class SelfAdaptiveThreshold(Threshold):
    r"""Self-adaptive thresholding (FreeMatch, Wang et al., ICLR 2023).

    .. math:: \tau \leftarrow (1 - m) \tau + m\, \overline{\max q}, \quad
              \tilde p \leftarrow (1 - m) \tilde p + m\, \overline{q}, \quad
              \tilde h \leftarrow (1 - m) \tilde h + m\, \mathrm{hist}(\arg\max q), \quad
              \tau(c) = \tau\, \tilde p(c) / \max_{c'} \tilde p(c')

    with means over the weak views of all processes, first the update, then the weight
    :math:`1[\max q \ge \tau(\arg\max q)]` on the same batch. All three start at 1 / C.

    Args:
        num_classes: C; the model sets it.
        momentum: m, in (0, 1]; the published decay 0.999 is 0.001.
        quantile: This quantile of the confidence in place of its mean, in (0, 1); None: the mean.
        clip: Range ``(low, high)`` that :math:`\tau` is kept in; None: no clipping. The released code has (0, 0.95) for
            SVHN alone.

    Raises:
        ValueError: If an argument is out of its range.
    """

    def __init__(
        self,
        num_classes: int,
        momentum: float = 0.001,
        quantile: float | None = None,
        clip: Sequence[float] | None = None,
    ) -> None:
        super().__init__(num_classes)
        self.check_number('momentum', momentum, lambda share: 0 < share <= 1, 'in (0, 1]')
        if quantile is not None:
            self.check_number('quantile', quantile, lambda share: 0 < share < 1, 'in (0, 1), or None for the mean')
        if clip is not None:
            is_pair = isinstance(clip, Sequence) and not isinstance(clip, str) and len(clip) == 2
            if not is_pair or not all(isinstance(end, (int, float)) for end in clip) or not 0 <= clip[0] < clip[1] <= 1:
                raise ValueError(
                    f'mmssl.SelfAdaptiveThreshold: `clip` must be None or (low, high) with 0 <= low < high <= 1, got '
                    f'{clip!r}'
                )
        self.momentum, self.quantile, self.clip = momentum, quantile, None if clip is None else tuple(clip)
        self.add_state('global_threshold', torch.tensor(1 / num_classes))
        self.add_state('model_prob', torch.full((num_classes,), 1 / num_classes))
        self.add_state('label_hist', torch.full((num_classes,), 1 / num_classes))

    @torch.no_grad()
    def forward(
        self,
        probs: Tensor,
        logits: Tensor | None = None,
        labeled_probs: Tensor | None = None,
        sample_ids: Tensor | None = None,
    ) -> Tensor:
        """Update, then weights in {0, 1}; see :meth:`Threshold.forward`."""
        confidence, labels = probs.max(dim=1)
        one_hot = torch.zeros_like(probs).scatter_(1, labels[:, None], 1.0)
        level, prob, hist = batch_mean(torch.cat([confidence[:, None], probs, one_hot], dim=1)).split(
            [1, self.num_classes, self.num_classes]
        )
        level = level[0] if self.quantile is None else torch.quantile(gather_batch(confidence), self.quantile)
        self.global_threshold.lerp_(level, self.momentum)
        if self.clip is not None:
            self.global_threshold.clamp_(*self.clip)
        self.model_prob.lerp_(prob, self.momentum)
        self.label_hist.lerp_(hist, self.momentum)
        return (confidence >= self.class_thresholds()[labels]).float()

    def class_thresholds(self) -> Tensor:
        """The present threshold of each class, (C,)."""
        return self_adaptive_thresholds(self.global_threshold, self.model_prob)

    def statistics(self) -> dict[str, Tensor]:
        """The global threshold."""
        return dict(threshold=self.global_threshold.clone())
