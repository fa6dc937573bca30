"""Accuracy of verification: are two faces the same person, by the distance of their features?"""

from collections.abc import Sequence
from typing import Any

import torch
from mmengine.evaluator import BaseMetric

from mmssl.functional.verification import distance_thresholds, fold_of_pair, squared_distance, verify_pairs
from mmssl.registry import METRICS
from mmssl.utils.values import check_number

OWNER = 'mmssl.FaceVerification'


@METRICS.register_module()
class FaceVerification(BaseMetric):
    """Accuracy on pairs by cross validation, the protocol of LFW and its successors.

    Data samples come from ``mmssl.FacePairsDataset`` (several of them in a ``ConcatDataset``) by way of
    ``mmssl.FeatureValLoop`` or ``mmssl.FeatureTestLoop``, which add the features. For each benchmark: ``NAME/accuracy``
    and ``NAME/std`` over the folds, in percent, and ``NAME/threshold``, the mean threshold on the squared distance of
    features of unit length; ``accuracy`` is the mean over the benchmarks.

    Args:
        num_folds: Folds of consecutive pairs, >= 2. Default: 10.
        threshold_step: Distance between the thresholds that are tried, from 0 to 4, in (0, 1]. Default: 0.01.
        collect_device: As in ``BaseMetric``.
        prefix: As in ``BaseMetric``. Default: ``'verification'``.
        collect_dir: As in ``BaseMetric``.

    Raises:
        KeyError: Data samples without features, or not of pairs.
        ValueError: Features that are no finite vectors; fewer pairs than folds; a pair with one image.
    """

    default_prefix = 'verification'

    def __init__(self,
                 num_folds: int = 10,
                 threshold_step: float = 0.01,
                 collect_device: str = 'cpu',
                 prefix: str | None = None,
                 collect_dir: str | None = None) -> None:
        super().__init__(collect_device=collect_device, prefix=prefix, collect_dir=collect_dir)
        check_number(num_folds, f'{OWNER}.num_folds', lambda number: number >= 2, 'an integer >= 2', int)
        check_number(threshold_step, f'{OWNER}.threshold_step', lambda number: 0 < number <= 1, 'in (0, 1]')
        self.num_folds = num_folds
        self.threshold_step = threshold_step

    def process(self, data_batch: Any, data_samples: Sequence[dict]) -> None:
        """Keep the features.

        Args:
            data_batch: Not used.
            data_samples: Faces with ``feat`` and what the data set says of their pair.
        """
        for sample in data_samples:
            if 'feat' not in sample:
                raise KeyError(f"{OWNER} needs the features of each image: set val_cfg.type='mmssl.FeatureValLoop' and "
                               "test_cfg.type='mmssl.FeatureTestLoop'")
            missing = [key for key in ('benchmark', 'pair', 'side', 'same') if key not in sample]
            if missing:
                raise KeyError(f'{OWNER} needs pairs of faces, from mmssl.FacePairsDataset; the data samples have no '
                               f'{missing}')
            feat = sample['feat'].detach().float().cpu()
            if feat.ndim != 1 or not feat.isfinite().all():
                found = f'shape {tuple(feat.shape)}' if feat.ndim != 1 else 'values that are not finite'
                raise ValueError(f'{OWNER}: features must be finite vectors, those of {sample.get("img_path")!r} have '
                                 f'{found}')
            self.results.append(dict(feat=feat, **{key: sample[key] for key in ('benchmark', 'pair', 'side', 'same')}))

    def compute_metrics(self, results: list[dict]) -> dict[str, float]:
        """The accuracies.

        Args:
            results: What ``process`` kept, of all processes.
        """
        benchmarks: dict[str, dict[int, dict[int, dict]]] = {}
        for result in results:
            sides = benchmarks.setdefault(result['benchmark'], {}).setdefault(result['pair'], {})
            if result['side'] in sides:
                raise ValueError(f'{OWNER}: pair {result["pair"]} of {result["benchmark"]!r} occurs twice; give each '
                                 'data set a `name` of its own')
            sides[result['side']] = result
        metrics, accuracies = {}, []
        for name, pairs in benchmarks.items():
            ordered = [pairs[number] for number in sorted(pairs)]
            if len(ordered) < self.num_folds:
                raise ValueError(f'{OWNER}: {name!r} has {len(ordered)} pairs, fewer than the {self.num_folds} folds')
            alone = [number for number in sorted(pairs) if len(pairs[number]) != 2]
            if alone:
                raise ValueError(f'{OWNER}: of pair {alone[0]} of {name!r} only one image was evaluated')
            first, second = (torch.stack([sides[side]['feat'] for sides in ordered]) for side in (0, 1))
            accuracy, threshold = verify_pairs(
                squared_distance(first, second),
                torch.tensor([bool(sides[0]['same']) for sides in ordered]),
                fold_of_pair(len(ordered), self.num_folds),
                distance_thresholds(self.threshold_step))
            accuracies.append(100 * accuracy.mean().item())
            metrics[f'{name}/accuracy'] = accuracies[-1]
            metrics[f'{name}/std'] = 100 * accuracy.std(correction=0).item()
            metrics[f'{name}/threshold'] = threshold.mean().item()
        metrics['accuracy'] = sum(accuracies) / len(accuracies)
        return metrics
