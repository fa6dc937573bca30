"""Expected and maximum calibration error of a classifier or a segmentor, with reliability diagrams."""

from collections.abc import Sequence
from typing import Any

import torch
from mmengine.evaluator import BaseMetric
from mmengine.logging import MessageHub
from mmengine.visualization import Visualizer
from torch import Tensor

from mmssl.functional.calibration import (
    NUM_FINE_BINS,
    bin_sums,
    confidence_and_prediction,
    equal_mass_bins,
    equal_width_bins,
    expected_calibration_error,
    fine_bins,
    maximum_calibration_error,
    merge_bins,
)
from mmssl.registry import METRICS
from mmssl.utils.values import check_choice, check_number
from mmssl.visualization import draw_reliability

OWNER = 'mmssl.CalibrationError'
BINNINGS = {'width': '', 'mass': 'adaptive_'}


@METRICS.register_module()
class CalibrationError(BaseMetric):
    """Expected (ECE) and maximum (MCE) calibration error, of any mmpretrain classifier or mmseg segmentor.

    Guo et al., On Calibration of Modern Neural Networks, ICML 2017, in [0, 1], smaller is better: ``ECE``, ``MCE``, and
    ``accuracy`` and ``confidence``, whose difference tells in which direction the model errs. With
    ``binning=['width', 'mass']`` also ``adaptive_ECE`` and ``adaptive_MCE``, over bins with equally many samples each.

    Data samples with ``pred_score`` (mmpretrain) count as one sample each; of those with ``seg_logits`` (mmseg), each
    pixel does. Of an image only its sums over the bins are kept; adaptive bins of pixels are therefore put together
    from narrow ones, equally wide in the log-odds. Several processes give the numbers of one.

    The reliability diagram goes to the visualizer of the run (image ``calibration_reliability`` of its iteration, in
    ``<work_dir>/<timestamp>/vis_data/vis_image`` and in TensorBoard or WandB).

    Args:
        num_bins: Number of bins, >= 1. Default: 15.
        binning: ``'width'`` for bins of equal width, open to the left and closed to the right, ``'mass'`` for adaptive
            ones, or a list of both. Default: ``'width'``.
        ignore_index: Label of pixels that do not count; of images, every label counts. Default: 255.
        diagram: Whether to draw the reliability diagram. Default: True.
        collect_device: As in ``BaseMetric``.
        prefix: As in ``BaseMetric``. Default: ``'calibration'``.
        collect_dir: As in ``BaseMetric``.

    Raises:
        ValueError: Scores that are no probabilities (of a retriever, say), that are not finite, or that do not belong
            to the prediction; a label outside the classes, or several labels of one image.
        KeyError: Data samples without scores or without truth.
    """

    default_prefix = 'calibration'

    def __init__(self,
                 num_bins: int = 15,
                 binning: str | Sequence[str] = 'width',
                 ignore_index: int = 255,
                 diagram: bool = True,
                 collect_device: str = 'cpu',
                 prefix: str | None = None,
                 collect_dir: str | None = None) -> None:
        super().__init__(collect_device=collect_device, prefix=prefix, collect_dir=collect_dir)
        check_number(num_bins, f'{OWNER}.num_bins', lambda number: number >= 1, 'an integer >= 1', int)
        self.binning = [binning] if isinstance(binning, str) else list(binning)
        for name in self.binning:
            check_choice(name, BINNINGS, f'{OWNER}.binning')
        if not self.binning:
            raise ValueError(f'{OWNER}.binning must name at least one of {list(BINNINGS)}, got []')
        self.num_bins = num_bins
        self.ignore_index = ignore_index
        self.diagram = diagram
        self._drawn = (-1, 0)

    def process(self, data_batch: Any, data_samples: Sequence[dict]) -> None:
        """Keep what is needed of each prediction.

        Args:
            data_batch: Not used.
            data_samples: Predictions with their truth.
        """
        for sample in data_samples:
            if 'seg_logits' in sample:
                self.results.append(self._of_pixels(sample))
            elif 'pred_score' in sample:
                self.results.append(self._of_image(sample))
            else:
                raise KeyError(f'{OWNER} needs `pred_score` (of a classifier) or `seg_logits` (of a segmentor) in the '
                               f'data samples, which have {sorted(sample)}')

    def compute_metrics(self, results: list) -> dict[str, float]:
        """The errors over the whole data set, and the picture.

        Args:
            results: What ``process`` kept, of all processes.
        """
        found = {name: self._sums(results, name) for name in self.binning}
        metrics, diagrams = {}, {}
        for name, sums in found.items():
            ece, mce = expected_calibration_error(sums).item(), maximum_calibration_error(sums).item()
            metrics[f'{BINNINGS[name]}ECE'], metrics[f'{BINNINGS[name]}MCE'] = ece, mce
            diagrams[f'bins of equal {name}: ECE {ece:.4f}, MCE {mce:.4f}'] = sums
        count, confidence, hits = sums.sum(dim=1)
        metrics['accuracy'], metrics['confidence'] = (hits / count).item(), (confidence / count).item()
        if self.diagram and count > 0:
            self._show(diagrams)
        return metrics

    def _sums(self, results: list, binning: str) -> Tensor:
        """Sums over the final bins, (3, B)."""
        images = [result for result in results if 'hit' in result]
        sums = torch.zeros(3, self.num_bins, dtype=torch.float64)
        if images and len(images) < len(results):
            raise ValueError(f'{OWNER}: the data samples mix images (`pred_score`) and pixels (`seg_logits`)')
        if images:
            confidence = torch.stack([result['confidence'] for result in images])
            hit = torch.stack([result['hit'] for result in images])
            if binning == 'width':
                return bin_sums(confidence, hit, equal_width_bins(confidence, self.num_bins), self.num_bins)
            _, group, counts = confidence.unique(return_inverse=True, return_counts=True)
            return bin_sums(confidence, hit, equal_mass_bins(counts, self.num_bins)[group], self.num_bins)
        if not results:
            return sums
        sums = torch.stack([result[binning] for result in results]).sum(dim=0)
        return sums if binning == 'width' else merge_bins(sums, equal_mass_bins(sums[0], self.num_bins), self.num_bins)

    def _of_image(self, sample: dict) -> dict[str, Tensor]:
        scores = sample['pred_score']
        where = _where(sample)
        if 'gt_label' not in sample:
            raise KeyError(f'{OWNER} needs `gt_label`, which {where} does not have')
        label = sample['gt_label'].flatten()
        if label.numel() != 1:
            raise ValueError(f'{OWNER} is for one label an image, {where} has {label.numel()}')
        scores = scores.float() if scores.dtype != torch.float64 else scores
        if not scores.isfinite().all():
            raise ValueError(f'{OWNER}: the scores of {where} are not finite')
        if scores.ndim != 1 or scores.min() < 0 or abs(scores.sum().item() - 1) > 0.01:
            raise ValueError(f'{OWNER}: `pred_score` must be probabilities of the classes that sum to 1, those of '
                             f'{where} have shape {tuple(scores.shape)} and go from {scores.min():.4g} to '
                             f'{scores.max():.4g} with the sum {scores.sum():.4g} (a retriever, or a head with several '
                             'labels, has none)')
        self._check_labels(label, len(scores), where)
        confidence, prediction = scores.max(dim=0)
        return dict(confidence=confidence.clamp(max=1).cpu(), hit=(prediction == label[0]).cpu())

    def _of_pixels(self, sample: dict) -> dict[str, Tensor]:
        where = _where(sample)
        for key in ('gt_sem_seg', 'pred_sem_seg'):
            if key not in sample:
                raise KeyError(f'{OWNER} needs `{key}`, which {where} does not have')
        logits, label, shown = (sample[key]['data'] for key in ('seg_logits', 'gt_sem_seg', 'pred_sem_seg'))
        label, shown = label.squeeze(0).to(logits.device), shown.squeeze(0).to(logits.device)
        if logits.shape[1:] != label.shape:
            raise ValueError(f'{OWNER}: {where} has a prediction of {tuple(logits.shape[1:])} pixels and a truth of '
                             f'{tuple(label.shape)}; load annotations after the resize, as for mmseg.IoUMetric')
        if len(logits) == 1:
            # mmseg has applied the sigmoid already, and compared with a threshold that need not be 1/2.
            score = logits[0] if logits.dtype == torch.float64 else logits[0].float()
            prediction = shown.long()
            confidence = torch.where(prediction == 1, score, 1 - score)
            num_classes, plausible = 2, bool(((score >= 0) & (score <= 1) | score.isnan()).all())
        else:
            confidence, prediction = (tensor[0] for tensor in confidence_and_prediction(logits[None]))
            num_classes, plausible = len(logits), torch.equal(prediction, shown.long())
        if not confidence.isfinite().all():
            raise ValueError(f'{OWNER}: the scores of {where} are not finite')
        if not plausible:
            raise ValueError(f'{OWNER}: `seg_logits` of {where} are not those that `pred_sem_seg` was made of, so that '
                             'its confidence is unknown (test-time augmentation keeps the logits of one view alone)')
        valid = label != self.ignore_index
        label, confidence, prediction = label[valid], confidence[valid], prediction[valid]
        self._check_labels(label, num_classes, where)
        hit = prediction == label
        # Counted in 64 bits, kept for each image, so that the padding of a distributed sampler can be left out.
        result = {}
        if 'width' in self.binning:
            index = equal_width_bins(confidence, self.num_bins)
            result['width'] = bin_sums(confidence, hit, index, self.num_bins).cpu()
        if 'mass' in self.binning:
            result['mass'] = bin_sums(confidence, hit, fine_bins(confidence), NUM_FINE_BINS).cpu()
        return result

    @staticmethod
    def _check_labels(label: Tensor, num_classes: int, where: str) -> None:
        wrong = label[(label < 0) | (label >= num_classes)]
        if wrong.numel():
            raise ValueError(f'{OWNER}: {where} has the labels {wrong.unique().tolist()[:8]}; allowed are 0 to '
                             f'{num_classes - 1} ({num_classes} classes)')

    def _show(self, diagrams: dict[str, Tensor]) -> None:
        """Hand the picture to the visualizer of the run, if there is one."""
        try:
            visualizer = Visualizer.get_current_instance()
            last = MessageHub.get_current_instance().get_info('iter')  # counted from 0; None where nothing is trained
        except RuntimeError:  # outside of a run
            return
        step = 0 if last is None else int(last) + 1
        # A loop may evaluate several models at the same step: none replaces the picture of another.
        same = self._drawn[1] + 1 if self._drawn[0] == step else 0
        self._drawn = (step, same)
        name = f'{(self.prefix or "").replace("/", "_")}_reliability' + (f'_{same + 1}' if same else '')
        visualizer.add_image(name, draw_reliability(diagrams), step=step)


def _where(sample: dict) -> str:
    """How a data sample is called in messages."""
    return repr(sample.get('img_path') or f'sample {sample.get("sample_idx", "?")}')
