"""SoftMatchWeight: a truncated Gaussian of the confidence in place of a threshold."""

import math

import torch
from torch import Tensor

from mmssl.functional.thresholds import softmatch_weight
from mmssl.registry import MODELS

from .base import Threshold
from .batch import gather_batch


@MODELS.register_module()
class SoftMatchWeight(Threshold):
    r"""Weights of SoftMatch (Chen et al., ICLR 2023).

    .. math:: \lambda(q) = \exp\Big(-\frac{\min(\max q - \mu, 0)^2 n^2}{2 \sigma^2}\Big)

    :math:`\mu` and :math:`\sigma^2` are moving averages of mean and unbiased variance of the confidence over the weak
    views of all processes; they start at 1 / C and 1, and are updated before they are used.

    Args:
        num_classes: C; the model sets it.
        momentum: In (0, 1]; the published decay 0.999 is 0.001.
        n_sigma: n > 0.

    Raises:
        ValueError: If an argument is out of its range.
    """

    def __init__(self, num_classes: int, momentum: float = 0.001, n_sigma: float = 2.0) -> None:
        super().__init__(num_classes)
        self.check_number('momentum', momentum, lambda share: 0 < share <= 1, 'in (0, 1]')
        self.check_number('n_sigma', n_sigma, lambda n: 0 < n < math.inf, '> 0 and finite')
        self.momentum, self.n_sigma = momentum, n_sigma
        self.add_state('mean', torch.tensor(1 / num_classes))
        self.add_state('variance', torch.tensor(1.0))

    @torch.no_grad()
    def forward(
        self,
        probs: Tensor,
        logits: Tensor | None = None,
        labeled_probs: Tensor | None = None,
        sample_ids: Tensor | None = None,
    ) -> Tensor:
        """Update, then weights in [0, 1]; see :meth:`Threshold.forward`."""
        confidence = probs.amax(dim=1)
        everywhere = gather_batch(confidence)
        mean = everywhere.mean()
        # A batch of one has no variance, not NaN.
        variance = ((everywhere - mean) ** 2).sum() / max(len(everywhere) - 1, 1)
        self.mean.lerp_(mean, self.momentum)
        self.variance.lerp_(variance, self.momentum)
        return softmatch_weight(confidence, self.mean, self.variance, self.n_sigma)

    def statistics(self) -> dict[str, Tensor]:
        """The confidence from which on a pseudo label counts fully, and the variance."""
        return dict(threshold=self.mean.clone(), variance=self.variance.clone())
