"""Base of the thresholds: the interface by which PseudoLabelClassifier asks how much each pseudo label counts."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from mmssl.utils.values import CheckedArguments

from .run_state import RunState


class Threshold(CheckedArguments, RunState):
    """How much each pseudo label counts.

    What a subclass averages over iterations it keeps in buffers (:meth:`add_state`), equal on all ranks. Probabilities
    are float32 and have no gradient.

    Args:
        num_classes: C; the model sets it.
        threshold: In [0, 1]; each subclass says what it is.

    Raises:
        ValueError: If an argument is out of its range.
    """

    # Whether the mean loss of labeled images has to be observed before the unsupervised loss begins.
    NEEDS_WARMUP = False
    # Whether `labeled_probs` are needed.
    NEEDS_LABELED = False

    def __init__(self, num_classes: int, threshold: float | None = None) -> None:
        super().__init__()
        self.check_number('num_classes', num_classes, lambda count: count >= 2, 'an integer >= 2', int)
        if threshold is not None:
            self.check_number('threshold', threshold, lambda share: 0 <= share <= 1, 'in [0, 1]')
        self.num_classes, self.threshold = num_classes, threshold

    @classmethod
    def required_hooks(cls, options: Mapping[str, Any]) -> tuple[str, ...]:
        """Types of the hooks that ``custom_hooks`` must hold for a threshold with these options."""
        return ()

    @torch.no_grad()
    def observe_labeled(self, losses: Tensor) -> None:
        """Look at labeled images before the unsupervised loss begins; most thresholds do not care.

        Args:
            losses: Cross entropy of each labeled image, (N,).
        """

    def forward(
        self,
        probs: Tensor,
        logits: Tensor | None = None,
        labeled_probs: Tensor | None = None,
        sample_ids: Tensor | None = None,
    ) -> Tensor:
        """Weights of the pseudo labels of one batch; updates what is averaged.

        Args:
            probs: Of the weak views, (N, C), aligned if the model aligns them.
            logits: Of the weak views before any alignment, (N, C).
            labeled_probs: Of the labeled images, (M, C).
            sample_ids: Number of each unlabeled image in its data set, int64 on the CPU, (N,).

        Returns:
            In [0, 1], (N,), without gradient.
        """
        raise NotImplementedError(f'{type(self).__name__} must define `forward`')

    def class_thresholds(self) -> Tensor | None:
        """The present threshold of each class, (C,), for diagnostics; None if there is none."""
        return None

    def statistics(self) -> dict[str, Tensor]:
        """Scalars for the log, without gradient."""
        thresholds = self.class_thresholds()
        return {} if thresholds is None else dict(threshold=thresholds.mean())

    def extra_repr(self) -> str:
        """Show the threshold."""
        return '' if self.threshold is None else f'threshold={self.threshold}'
