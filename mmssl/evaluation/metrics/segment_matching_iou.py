"""Mean IoU of segments without classes, each true one matched with the predicted one that fits it best."""

from collections.abc import Sequence
from typing import Any

from mmengine.evaluator import BaseMetric

from mmssl.functional.unsupervised_segmentation import best_ious
from mmssl.registry import METRICS
from mmssl.utils.values import check_choice

ANNOTATORS = ('all', 'fine', 'coarse')


@METRICS.register_module()
class SegmentMatchingIoU(BaseMetric):
    """The mIoU of unsupervised segmentation (Kim et al. 2020), in percent, larger is better.

    For each true segment the best IoU with any predicted segment; averaged over the segments of one person's truth,
    over the people, and over the images. Predicted labels have no meaning, so several true segments may match one
    predicted segment, and a label that occurs in several places is one segment. Also ``num_labels``, the labels of an
    image, averaged over the images.

    Data samples hold ``pred_segments`` (1, H, W) and ``gt_segments`` (A, H, W), one map for each of A people, in which
    -1 counts for nothing (``mmssl.LoadSegments``).

    Args:
        annotators: ``'all'`` people of BSDS500, or of each image only the one with the most segments (``'fine'``) or
            the fewest (``'coarse'``). Default: ``'all'``.
        collect_device: As in ``BaseMetric``.
        prefix: As in ``BaseMetric``. Default: ``'segments'``.

    Raises:
        ValueError: ``annotators`` is none of these, or the sizes of prediction and truth differ.
        KeyError: A sample has no truth.
    """

    default_prefix = 'segments'

    def __init__(self, annotators: str = 'all', collect_device: str = 'cpu', prefix: str | None = None) -> None:
        check_choice(annotators, ANNOTATORS, 'mmssl.SegmentMatchingIoU: `annotators`')
        super().__init__(collect_device, prefix)
        self.annotators = annotators

    def process(self, data_batch: Any, data_samples: Sequence[dict]) -> None:
        """Score the images of one batch; an image of which nothing is known counts for nothing."""
        for sample in data_samples:
            if 'gt_segments' not in sample:
                raise KeyError(f'mmssl.SegmentMatchingIoU: {sample.get("img_path")!r} has no true segments: give the '
                               'data set `seg_map_path` and its pipeline mmssl.LoadSegments')
            prediction, truth = sample['pred_segments']['data'][0].cpu(), sample['gt_segments']['data'].cpu()
            if prediction.shape != truth.shape[1:]:
                raise ValueError(f'mmssl.SegmentMatchingIoU: the prediction of {sample.get("img_path")!r} has the size '
                                 f'{tuple(prediction.shape)}, its truth {tuple(truth.shape[1:])}')
            scores = [score for score in (best_ious(prediction, one) for one in truth) if len(score)]
            if not scores:
                continue
            if self.annotators != 'all':
                scores = [(max if self.annotators == 'fine' else min)(scores, key=len)]
            mean = sum(score.mean().item() for score in scores) / len(scores)
            self.results.append((mean, len(prediction.unique())))

    def compute_metrics(self, results: list[tuple[float, int]]) -> dict[str, float]:
        """Average over the images.

        Raises:
            ValueError: Of no image anything is known.
        """
        if not results:
            raise ValueError('mmssl.SegmentMatchingIoU: no image has a true segment')
        scores, labels = zip(*results, strict=True)
        return dict(mIoU=100 * sum(scores) / len(scores), num_labels=sum(labels) / len(labels))
