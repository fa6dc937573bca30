"""FlexMatchThreshold: lower thresholds for classes that have been learned less."""

import logging
from collections.abc import Mapping
from typing import Any

import torch
from mmengine.logging import print_log
from torch import Tensor

from mmssl.functional.thresholds import flexmatch_status, flexmatch_thresholds
from mmssl.registry import MODELS

from .base import Threshold
from .batch import gather_batch

KEY = 'model.semi_train_cfg.threshold'

@MODELS.register_module()
class FlexMatchThreshold(Threshold):
    r"""Curriculum pseudo labeling (FlexMatch, Zhang et al., NeurIPS 2021).

    .. math:: w_b = 1\Big[\max q_b \ge \tau \frac{\beta(\hat y_b)}{2 - \beta(\hat y_b)}\Big], \qquad
              \beta(c) = \frac{\sigma(c)}{\max\{\max_{c'} \sigma(c'),\ \mathrm{unused}\}}

    :math:`\sigma(c)` counts the unlabeled images whose last prediction with confidence of at least :math:`\tau` was c;
    the others are unused. Weights come from the state before the batch, which is then taken in. Of two confident
    predictions for one image in a batch, the more confident one counts.

    The table of last predictions is a buffer, so the checkpoint holds a number for each unlabeled image. Its rows are
    the numbers of the images in the unlabeled data set: ``sample_idx``, which mmengine's data sets give and
    mmpretrain's ``PackInputs`` hands on.

    Args:
        num_classes: C; the model sets it.
        threshold: :math:`\tau`, in [0, 1].
        warmup: Whether the number of unused images is in the denominator.
        num_samples: Images of the unlabeled data set, >= 1. None: ``mmssl.FlexMatchHook`` finds out; without it the
            first iteration raises.

    Raises:
        ValueError: If an argument is out of its range.
    """

    def __init__(
        self, num_classes: int, threshold: float = 0.95, warmup: bool = True, num_samples: int | None = None
    ) -> None:
        super().__init__(num_classes, threshold)
        if not isinstance(warmup, bool):
            raise ValueError(f'mmssl.FlexMatchThreshold: `warmup` must be True or False, got {warmup!r}')
        if num_samples is not None:
            self.check_number('num_samples', num_samples, lambda count: count >= 1, 'an integer >= 1, or None', int)
        self.warmup, self.num_samples = warmup, num_samples
        # Only for the log.
        self._used: Tensor | None = None
        # Length of a table that was not loaded, since it is of another data set.
        self.refused: int | None = None
        # Last confident prediction of each image, -1: none so far.
        self.register_buffer('last_prediction', torch.full((num_samples or 0,), -1, dtype=torch.long))

    @classmethod
    def required_hooks(cls, options: Mapping[str, Any]) -> tuple[str, ...]:
        """``mmssl.FlexMatchHook``, unless the config says how many images there are."""
        return () if options.get('num_samples') is not None else ('mmssl.FlexMatchHook',)

    def set_num_samples(self, num_samples: int) -> None:
        """Size the table.

        Args:
            num_samples: Images of the unlabeled data set.

        Raises:
            ValueError: If the config says another number.
        """
        if self.num_samples is None:
            self.num_samples = num_samples
            self.last_prediction = self.last_prediction.new_full((num_samples,), -1)
        if self.num_samples != num_samples:
            raise ValueError(
                f'{KEY}.num_samples must be the length of the unlabeled source of train_dataloader.dataset, '
                f'{num_samples}, got {self.num_samples}'
            )

    def check_resumed(self) -> None:
        """Check, once a checkpoint was resumed from, that its table was one of the same data.

        Raises:
            ValueError: If it had another length.
        """
        if self.refused is not None:
            raise ValueError(
                f'{KEY} (mmssl.FlexMatchThreshold): the checkpoint knows {self.refused} unlabeled images, but the '
                f'unlabeled source of train_dataloader.dataset has {self.num_samples}: restore the list, or start a '
                'new run (load_from)'
            )

    def reset(self) -> None:
        """Forget all predictions, for a new run that has loaded a checkpoint of another (``load_from``)."""
        self.last_prediction.fill_(-1)

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: Any, **kwargs: Any) -> None:
        name = f'{prefix}last_prediction'
        table = state_dict.get(name)
        self.refused = None
        if table is not None and table.shape != self.last_prediction.shape:
            if self.num_samples is None:  # for evaluation, or before the data is known
                self.last_prediction = self.last_prediction.new_empty(table.shape)
            else:
                self.refused = len(table)
                state_dict[name] = self.last_prediction
                print_log(
                    f'{KEY} (mmssl.FlexMatchThreshold): the table of the checkpoint is for {len(table)} unlabeled '
                    f'images, the data has {self.num_samples}: it begins empty',
                    logger='current',
                    level=logging.WARNING,
                )
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    @torch.no_grad()
    def forward(
        self,
        probs: Tensor,
        logits: Tensor | None = None,
        labeled_probs: Tensor | None = None,
        sample_ids: Tensor | None = None,
    ) -> Tensor:
        """Weights in {0, 1}, then the predictions are taken in; see :meth:`Threshold.forward`.

        Raises:
            ValueError: Without ``sample_ids``, or if one is not in the table.
        """
        self._check_ids(sample_ids)
        confidence, labels = probs.max(dim=1)
        self._used = self.class_thresholds()
        weight = (confidence >= self._used[labels]).float()
        ids = sample_ids.to(probs.device, non_blocking=True)
        self._take_in(*(gather_batch(values) for values in (ids, confidence, labels)))
        return weight

    def _check_ids(self, sample_ids: Tensor | None) -> None:
        if len(self.last_prediction) == 0:
            raise ValueError(
                f'{KEY} (mmssl.FlexMatchThreshold) does not know the number of unlabeled images: add '
                "dict(type='mmssl.FlexMatchHook') to custom_hooks, or set num_samples"
            )
        if sample_ids is None:
            raise ValueError(
                f'{KEY} (mmssl.FlexMatchThreshold) needs the number of each unlabeled image in its data set: '
                '`sample_idx` must be in the meta_keys of the packing transform (PackInputs has it by default)'
            )
        low, high = int(sample_ids.min()), int(sample_ids.max())
        if low < 0 or high >= len(self.last_prediction):
            raise ValueError(
                f'{KEY} (mmssl.FlexMatchThreshold): an unlabeled image has the number {low if low < 0 else high}, but '
                f'the table is for {len(self.last_prediction)} images: num_samples must be the length of the unlabeled '
                'source of train_dataloader.dataset'
            )

    def _take_in(self, ids: Tensor, confidence: Tensor, labels: Tensor) -> None:
        """Write the confident predictions of the global batch, each (N,), into the table."""
        best = torch.zeros(len(self.last_prediction), device=ids.device, dtype=confidence.dtype)
        best.scatter_reduce_(0, ids, confidence, 'amax')
        wins = (confidence >= self.threshold) & (confidence == best[ids])
        # No index by a mask: its length would have to be read from the GPU. Equal confidences: the larger class.
        new = torch.full_like(self.last_prediction, -1).scatter_reduce_(0, ids, torch.where(wins, labels, -1), 'amax')
        self.last_prediction.copy_(torch.where(new >= 0, new, self.last_prediction))

    def class_thresholds(self) -> Tensor:
        """The present threshold of each class, (C,)."""
        counts = self.last_prediction.new_zeros(self.num_classes + 1)
        counts.scatter_add_(0, self.last_prediction + 1, torch.ones_like(self.last_prediction))
        return flexmatch_thresholds(flexmatch_status(counts[1:], counts[0], self.warmup), self.threshold)

    def statistics(self) -> dict[str, Tensor]:
        """Mean over the classes of the thresholds of the last batch."""
        return {} if self._used is None else dict(threshold=self._used.mean())
