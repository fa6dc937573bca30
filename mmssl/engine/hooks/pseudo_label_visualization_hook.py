"""Pictures of what the unsupervised loss sees: image, pseudo label, K, weight, prediction; R where truth is known."""

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from mmengine.dist import master_only
from mmengine.runner import Runner
from torch import Tensor

from mmssl.functional.fpl import fuzzy_positive_assignment, fuzzy_positive_weight
from mmssl.functional.fpl_diagnostics import positive_gradient_score
from mmssl.registry import HOOKS
from mmssl.utils.values import check_number
from mmssl.visualization import Panel, draw_panels, pseudo_label_row

from .fpl_diagnostics_hook import assignment_options, weight_options
from .record import RecordingHook


@HOOKS.register_module()
class PseudoLabelVisualizationHook(RecordingHook):
    """Writes a picture with one row for each of the first images of an unlabeled batch.

    The columns are the (mixed) image, the hidden truth where the data set gives it, the pseudo label, K of FPL's
    Alg. 1, FPL's pixel weight, the student's prediction, and, with the truth, the positive-gradient score R. With
    another unsupervised loss than ``mmssl.FPLLoss``, K, weight and R are those that FPL's defaults would give. Pictures
    go to ``<work_dir>/<timestamp>/vis_data/pseudo_labels/iter_<n>.png`` and to the visualizer's other backends
    (TensorBoard, WandB).

    Args:
        interval: Iterations between pictures, >= 1. Default: 500.
        num_images: Rows of a picture, >= 1. Default: 4.
    """

    priority = 'LOW'

    def __init__(self, interval: int = 500, num_images: int = 4) -> None:
        super().__init__(interval)
        key = 'custom_hooks: mmssl.PseudoLabelVisualizationHook.num_images'
        check_number(num_images, key, lambda number: number >= 1, 'an integer >= 1', int)
        self.num_images = num_images

    @master_only
    def on_record(self, runner: Runner, model: Any, record: Any) -> None:
        """Draw the record."""
        meta = getattr(runner.train_dataloader.dataset, 'metainfo', None) or {}
        classes, palette = meta.get('classes') or (), meta.get('palette') or default_palette(record.logits.shape[1])
        picture = draw_panels(self._rows(model, record), classes, palette)
        folder = Path(runner.log_dir) / 'vis_data' / 'pseudo_labels'
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f'iter_{runner.iter + 1}.png'
        if not cv2.imwrite(str(path), picture[..., ::-1]):
            raise OSError(f'mmssl.PseudoLabelVisualizationHook: could not write {path}')
        for backend in runner.visualizer._vis_backends.values():
            # The local backend would write the same picture a second time.
            if type(backend).__name__ != 'LocalVisBackend':
                backend.add_image('pseudo_labels', picture, step=runner.iter + 1)

    def _rows(self, model: Any, record: Any) -> list[list[Panel]]:
        count = min(self.num_images, len(record.inputs))
        logits, targets = (t[:count].float() for t in (record.logits, record.target_logits))
        assigned = fuzzy_positive_assignment(targets, **assignment_options(model.unsup_loss))
        weight = fuzzy_positive_weight(
            assigned.positive_prob, assigned.negative_prob, assigned.k, **weight_options(model.unsup_loss)
        )
        images = denormalize(record.inputs[:count], model.data_preprocessor)
        pseudo, prediction = targets.argmax(dim=1).cpu().numpy(), logits.argmax(dim=1).cpu().numpy()
        k, weight = assigned.k.float().cpu().numpy(), weight.cpu().numpy()
        rows = []
        for index in range(count):
            truth = score = None
            if record.truth is not None:
                truth = record.truth[index : index + 1]
                known = truth != record.ignore_index
                score = positive_gradient_score(
                    logits[index : index + 1], assigned.positive[index : index + 1], truth.where(known, 0)
                )
                score = score.masked_fill(~known, float('nan'))[0].cpu().numpy()
                truth = truth[0].cpu().numpy()
            rows.append(
                pseudo_label_row(
                    images[index], pseudo[index], k[index], prediction[index], truth, weight[index], score, k.max()
                )
            )
        return rows


def denormalize(images: Tensor, data_preprocessor: Any) -> np.ndarray:
    """Undo a (possibly wrapped) stock preprocessor's normalization.

    Args:
        images: Shape (N, 3, H, W).
        data_preprocessor: Has ``mean`` and ``std``, or wraps one that has.

    Returns:
        RGB, uint8, shape (N, H, W, 3).
    """
    inner = getattr(data_preprocessor, 'data_preprocessor', data_preprocessor)
    images = images.detach().float()
    mean, std = getattr(inner, 'mean', None), getattr(inner, 'std', None)
    if isinstance(mean, Tensor) and isinstance(std, Tensor):
        images = images * std.to(images) + mean.to(images)
    # OpenCV loads BGR; a stock config turns it into RGB in the preprocessor.
    converted = getattr(inner, 'channel_conversion', getattr(inner, '_channel_conversion', False))
    if not converted:
        images = images.flip(1)
    return images.round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1).cpu().numpy()


def default_palette(num_classes: int) -> list[list[int]]:
    """Distinguishable colors where a data set has none: evenly spaced hues."""
    hsv = np.zeros((1, num_classes, 3), dtype=np.uint8)
    hsv[0, :, 0] = np.arange(num_classes) * 180 // num_classes
    hsv[0, :, 1:] = 220
    return cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)[0].tolist()
