"""PseudoLabelQuality: what pseudo labels a model would give, and how good they are, as a metric of an evaluation."""

from collections.abc import Sequence
from typing import Any

import torch
from mmengine.evaluator import BaseMetric
from mmengine.logging import print_log

from mmssl.functional.pseudo_label_quality import pseudo_label_counts, pseudo_label_scores
from mmssl.registry import METRICS
from mmssl.utils.values import check_number


@METRICS.register_module()
class PseudoLabelQuality(BaseMetric):
    """Coverage and accuracy of the pseudo labels of an mmpretrain classifier on images with known labels.

    Evaluated on the unlabeled set (where its labels exist for analysis), it says what a fixed threshold would let
    through. Keys: ``coverage`` (share of images with a confidence of at least ``threshold``), ``accuracy`` (of all),
    ``selected_accuracy`` (of those with the confidence), and the largest and smallest class ``share_max`` and
    ``share_min`` of the selected ones; with ``per_class`` also ``share/<class>``, ``selected_share/<class>`` and
    ``class_accuracy/<class>`` (precision of the pseudo class). A share of nothing is NaN. Images without a label count
    for coverage and shares alone.

    Args:
        threshold: Smallest confidence of a pseudo label that counts, in [0, 1].
        per_class: Whether the numbers of the classes are among the results; they are printed in any case.
        collect_device: As in mmengine.
        prefix: Of the keys. Default: ``'pseudo_label'``.

    Raises:
        ValueError: If an argument is out of its range.
    """

    default_prefix = 'pseudo_label'

    def __init__(
        self,
        threshold: float = 0.95,
        per_class: bool = False,
        collect_device: str = 'cpu',
        prefix: str | None = None,
    ) -> None:
        super().__init__(collect_device, prefix)
        check_number(threshold, 'mmssl.PseudoLabelQuality: `threshold`', lambda share: 0 <= share <= 1, 'in [0, 1]')
        if not isinstance(per_class, bool):
            raise ValueError(f'mmssl.PseudoLabelQuality: `per_class` must be True or False, got {per_class!r}')
        self.threshold, self.per_class = threshold, per_class

    def process(self, data_batch: Any, data_samples: Sequence[dict]) -> None:
        """Take in the predictions of one batch.

        Args:
            data_batch: Not used.
            data_samples: With ``pred_score`` and, where it is known, ``gt_label``.

        Raises:
            ValueError: If a sample has no ``pred_score``.
        """
        for sample in data_samples:
            scores = sample.get('pred_score')
            if scores is None:
                raise ValueError(
                    'mmssl.PseudoLabelQuality: needs the predictions of an mmpretrain classifier (`pred_score`), got a '
                    f'sample with {sorted(sample)}'
                )
            confidence, label = scores.max(dim=0)
            truth = sample.get('gt_label')
            known = truth is not None and truth.numel() == 1
            self.results.append((len(scores), int(label), float(confidence), int(truth) if known else -1))

    def compute_metrics(self, results: list[tuple[int, int, float, int]]) -> dict[str, float]:
        """The scores, from what :meth:`process` has kept of each image.

        Args:
            results: Number of classes, pseudo label, confidence, and true label or -1.
        """
        numbers = torch.tensor(results, dtype=torch.float64)
        labels, truth = numbers[:, 1].long(), numbers[:, 3].long()
        counts = pseudo_label_counts(labels, numbers[:, 2] >= self.threshold, truth, int(numbers[0, 0]))
        scores, shares = pseudo_label_scores(counts)
        selected = shares['selected_share']
        metrics = {**scores, 'share_max': selected.max(), 'share_min': selected.min()}
        meta = self.dataset_meta or {}
        names = [str(name) for name in meta.get('classes') or range(len(selected))]
        lines = ['class: share of the pseudo labels, of the selected ones, accuracy']
        for index, name in enumerate(names):
            lines.append(f'{name}: {", ".join(f"{values[index]:.4f}" for values in shares.values())}')
            if self.per_class:
                metrics.update({f'{key}/{name}': values[index] for key, values in shares.items()})
        print_log('\n'.join(lines), logger='current')
        return {key: float(value) for key, value in metrics.items()}
