"""CoveringRate: how often a prediction is a candidate, to choose checkpoints without clean labels."""

from collections.abc import Sequence
from typing import Any

import torch
from mmengine.evaluator import BaseMetric

from mmssl.functional.partial_label import accuracy_from_covering_rate, covering_rate
from mmssl.registry import METRICS

OWNER = 'mmssl.CoveringRate'


@METRICS.register_module()
class CoveringRate(BaseMetric):
    """Agreement of an mmpretrain classifier with the candidate sets of images that it does not learn from.

    The covering rate of Wang et al., Realistic Evaluation of Deep Partial-Label Learning Algorithms, ICLR 2025: the
    share of the images whose likeliest class, of all classes, is one of their candidates. It needs no true label, so it
    may choose a checkpoint: ``save_best='candidates/covering_rate'``. Keys:

    - ``covering_rate``, in percent.
    - ``accuracy_estimate``: the accuracy, in percent, that it stands for where every false label enters with the same
      probability; too high where candidates are what looks alike. Of two checkpoints it prefers the same.
    - ``true_accuracy``, in percent, if all images note their ``true_label``: for analysis alone.

    Args:
        collect_device: As in mmengine.
        prefix: Of the keys. Default: ``'candidates'``.

    Raises:
        KeyError: A sample has no prediction of a classifier, or no candidate set.
        ValueError: A set that does not fit the prediction, or is empty.
    """

    default_prefix = 'candidates'

    def process(self, data_batch: Any, data_samples: Sequence[dict]) -> None:
        """Take in the predictions of one batch.

        Args:
            data_batch: Not used.
            data_samples: With ``pred_score``, (C,), and ``candidates``, bool, (C,), and perhaps ``true_label``.
        """
        for sample in data_samples:
            for key, source in (('pred_score', 'the predictions of an mmpretrain classifier'),
                                ('candidates', 'those of mmssl.PartialLabelDataset')):
                if key not in sample:
                    raise KeyError(f'{OWNER} needs `{key}`, {source}, got a sample with {sorted(sample)}')
            scores = sample['pred_score'].cpu()
            candidates = torch.as_tensor(sample['candidates']).bool().cpu()
            if candidates.shape != scores.shape or not candidates.any():
                raise ValueError(f'{OWNER}: a candidate set must be a mask of {len(scores)} classes with one label at '
                                 f'least, got shape {tuple(candidates.shape)} with {int(candidates.sum())} labels')
            truth = sample.get('true_label')
            self.results.append((int(scores.argmax()), candidates, -1 if truth is None else int(truth)))

    def compute_metrics(self, results: list[tuple[int, torch.Tensor, int]]) -> dict[str, float]:
        """The shares, from what :meth:`process` has kept of each image.

        Args:
            results: Prediction, candidate set, and true label or -1.
        """
        predictions = torch.tensor([prediction for prediction, _, _ in results])
        candidates = torch.stack([mask for _, mask, _ in results])
        truth = torch.tensor([label for _, _, label in results])
        rate = covering_rate(predictions, candidates)
        metrics = dict(covering_rate=rate, accuracy_estimate=accuracy_from_covering_rate(rate, candidates))
        if (truth >= 0).all():
            metrics['true_accuracy'] = (predictions == truth).double().mean()
        return {key: 100 * value.item() for key, value in metrics.items()}
