"""Candidate labels of data sets that hold them in their own annotations."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from mmcv.transforms import BaseTransform

from mmssl.registry import TRANSFORMS


@TRANSFORMS.register_module()
class CandidateLabels(BaseTransform):
    """Turn a sample's list of candidate labels into the mask that a partial-label classifier reads.

    For data sets whose annotations hold the candidates; around any other goes ``mmssl.PartialLabelDataset``, which
    needs no transform. It comes before ``PackInputs(algorithm_keys=['candidates'])``.

    Args:
        num_classes: C >= 2.
        key: Where the list is. Default: ``'candidates'``.

    Raises:
        KeyError: A sample has no list there.
        ValueError: ``num_classes`` is below 2; a sample's list is empty or has a label outside the classes.
    """

    def __init__(self, num_classes: int, key: str = 'candidates') -> None:
        if isinstance(num_classes, bool) or not isinstance(num_classes, int) or num_classes < 2:
            raise ValueError(f'mmssl.CandidateLabels: `num_classes` must be an integer >= 2, got {num_classes!r}')
        self.num_classes, self.key = num_classes, key

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        """Add ``candidates``, bool, (C,), and take ``gt_label`` away.

        Args:
            results: What the pipeline has made so far.
        """
        where = f'mmssl.CandidateLabels: {results.get("img_path", "a sample")}'
        if self.key not in results:
            raise KeyError(f'{where} has no `{self.key}`; it has {sorted(map(str, results))}')
        labels = results[self.key]
        labels = [int(label) for label in labels] if isinstance(labels, Iterable) else []
        if not labels or min(labels) < 0 or max(labels) >= self.num_classes:
            raise ValueError(f'{where} has the candidates {results[self.key]!r}; allowed are one or more of 0 to '
                             f'{self.num_classes - 1}')
        mask = np.zeros(self.num_classes, bool)
        mask[labels] = True
        results.pop('gt_label', None)
        results['candidates'] = mask
        return results

    def __repr__(self) -> str:
        return f'{type(self).__name__}(num_classes={self.num_classes}, key={self.key!r})'
