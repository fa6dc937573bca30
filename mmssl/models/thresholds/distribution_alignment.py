"""DistributionAlignment: pulls the mean of the pseudo labels toward a given distribution of the classes."""

from collections.abc import Sequence

import torch
from torch import Tensor

from mmssl.functional.thresholds import align_distribution
from mmssl.registry import MODELS
from mmssl.utils.values import check_choice, check_number

from .batch import batch_mean
from .run_state import RunState

NAME = 'mmssl.DistributionAlignment'


@MODELS.register_module()
class DistributionAlignment(RunState):
    r"""Distribution alignment (ReMixMatch, Berthelot et al., ICLR 2020).

    .. math:: \hat q = \mathrm{norm}\Big(q \cdot \frac{t + 10^{-6}}{\tilde p + 10^{-6}}\Big)

    :math:`\tilde p` is the moving average of the mean weak probabilities over all processes; it starts as the mean of
    the first batch and is updated before it is used.

    Args:
        num_classes: C; the model sets it.
        target: t: ``'uniform'`` (SoftMatch); ``'labeled'``, the moving average of the mean prediction on labeled
            images, which starts uniform (AdaMatch); or C numbers >= 0, the shares of the classes, of which not all
            are 0.
        momentum: Of both averages, in (0, 1]; the published decay 0.999 is 0.001.
        apply_to: ``'all'``: threshold and pseudo labels see aligned probabilities (AdaMatch); ``'confidence'``: the
            threshold alone, and the pseudo labels stay what the model says (SoftMatch).

    Raises:
        ValueError: If an argument is out of its range.
    """

    def __init__(
        self,
        num_classes: int,
        target: str | Sequence[float] = 'uniform',
        momentum: float = 0.001,
        apply_to: str = 'all',
    ) -> None:
        super().__init__()
        check_number(num_classes, f'{NAME}: `num_classes`', lambda count: count >= 2, 'an integer >= 2', int)
        check_number(momentum, f'{NAME}: `momentum`', lambda share: 0 < share <= 1, 'in (0, 1]')
        check_choice(apply_to, ('all', 'confidence'), f'{NAME}: `apply_to`')
        self.momentum, self.apply_to = momentum, apply_to
        self.follows_labeled = target == 'labeled'
        self.add_state('target', class_distribution(target, num_classes))
        self.add_state('model_prob', torch.full((num_classes,), 1 / num_classes))
        self.add_state('updates', torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def forward(self, probs: Tensor, labeled_probs: Tensor) -> Tensor:
        """Update both averages and align.

        Args:
            probs: Of the weak views, (N, C).
            labeled_probs: Of the labeled images, (M, C).

        Returns:
            (N, C).
        """
        # The first batch is copied.
        momentum = torch.where(self.updates > 0, self.momentum, 1.0).to(self.model_prob.dtype)
        self.model_prob.lerp_(batch_mean(probs), momentum)
        if self.follows_labeled:
            self.target.lerp_(batch_mean(labeled_probs), self.momentum)
        self.updates += 1
        return align_distribution(probs, self.target, self.model_prob)


def class_distribution(target: str | Sequence[float], num_classes: int) -> Tensor:
    """What ``target`` starts with, (C,).

    Raises:
        ValueError: If it is no word that is known and not one share for each class.
    """
    if target in ('uniform', 'labeled') and isinstance(target, str):
        return torch.full((num_classes,), 1 / num_classes)
    is_list = isinstance(target, Sequence) and not isinstance(target, str)
    numbers = is_list and all(isinstance(share, (int, float)) and 0 <= share < float('inf') for share in target)
    if not numbers or len(target) != num_classes or sum(target) <= 0:
        raise ValueError(
            f"{NAME}: `target` must be 'uniform', 'labeled' or {num_classes} numbers >= 0, one for each class, got "
            f'{target!r}'
        )
    shares = torch.tensor(target, dtype=torch.float32)
    return shares / shares.sum()
