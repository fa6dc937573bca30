"""Quality of the pseudo labels against hidden truth, logged every so often."""

import fnmatch
from collections.abc import Sequence
from typing import Any

import torch
from mmengine.runner import Runner
from torch import nn

from mmssl.datasets import UnlabeledImageDataset
from mmssl.functional.fpl_diagnostics import fpl_diagnostics
from mmssl.registry import HOOKS

from .record import RecordingHook

ASSIGNMENT_KEYS = ('cum_prob', 'max_k', 'k_rule', 'k_ratio')
DEFAULT_KEYS = ('*_acc', 'case?_ratio', 'case?_score_*', 'case2_cosine_*')
WEIGHT_KEYS = ('weight_mode', 'weight_scale', 'weight_bound')


@HOOKS.register_module()
class FPLDiagnosticsHook(RecordingHook):
    """Logs pseudo-label accuracy and FPL's gradient scores, where the data set gives the unlabeled images' truth.

    Off iterations cost nothing. The scores are those of :func:`mmssl.functional.fpl_diagnostics.fpl_diagnostics` for
    student 1 and rank 0's part of the batch, with ``unsup_`` before their names: ``unsup_pseudo_acc`` (share of pixels
    with a right pseudo label), ``unsup_positive_acc`` (truth among the fuzzy positives), and by case of Sec. 3.4
    ``unsup_case2_ratio``, ``unsup_case2_score_fpl`` (R), ``unsup_case2_cosine_fpl``, ... A score over no pixel is not
    logged. With another unsupervised loss than ``mmssl.FPLLoss`` they say what FPL with its defaults would do. The
    truth reaches no loss.

    Args:
        interval: Iterations between two measurements, >= 1. Default: 50.
        keys: Which scores to log, as ``fnmatch`` patterns of their names without ``unsup_``; ``['*']`` logs all.
            Default: accuracies, ratios, R of all cases, and the cosine of case 2.

    Raises:
        ValueError: If a key matches no score, or, before training, if the unlabeled images come without truth (their
            pipeline needs ``LoadAnnotations`` and their data set ``seg_map_path``).
    """

    # Before the logger hook of the same iteration.
    priority = 'NORMAL'

    def __init__(self, interval: int = 50, keys: Sequence[str] = DEFAULT_KEYS) -> None:
        super().__init__(interval)
        if isinstance(keys, str) or not isinstance(keys, Sequence) or not all(isinstance(key, str) for key in keys):
            raise ValueError(f'custom_hooks: mmssl.FPLDiagnosticsHook.keys must be a list of patterns, got {keys!r}')
        names = score_names()
        for key in keys:
            if not fnmatch.filter(names, key):
                raise ValueError(
                    f'custom_hooks: mmssl.FPLDiagnosticsHook.keys: {key!r} matches no score; there are {names}'
                )
        self.keys = tuple(keys)

    def before_train(self, runner: Runner) -> None:
        """Check that the model can record and that the unlabeled images bring their truth."""
        super().before_train(runner)
        for name, source in named_sources(runner.train_dataloader.dataset):
            if isinstance(source, UnlabeledImageDataset) and (
                    source.seg_map_path is None or not loads_labels(source.pipeline)):
                raise missing_truth(name)

    def on_record(self, runner: Runner, model: Any, record: Any) -> None:
        """Measure and hand the numbers to the log."""
        if record.truth is None:
            raise missing_truth('unlabeled')
        options = assignment_options(model.unsup_loss)
        scores = fpl_diagnostics(
            record.logits, record.target_logits, record.truth, record.valid, record.ignore_index, **options
        )
        for name, value in scores.items():
            wanted = any(fnmatch.fnmatchcase(name, key) for key in self.keys)
            if wanted and value.dim() == 0 and torch.isfinite(value):
                runner.message_hub.update_scalar(f'train/unsup_{name}', value.item())


def loads_labels(step: Any) -> bool:
    """Whether a pipeline or transform loads label maps, itself or in a pipeline inside it (``mmssl.Cached``)."""
    if isinstance(step, (list, tuple)):
        return any(loads_labels(inner) for inner in step)
    inner = getattr(step, 'transforms', None)
    return type(step).__name__ == 'LoadAnnotations' if inner is None else loads_labels(inner)


def missing_truth(source: str) -> ValueError:
    """The error for an unlabeled source without truth."""
    key = f'train_dataloader.dataset.sources.{source}'
    return ValueError(
        f'custom_hooks: mmssl.FPLDiagnosticsHook needs the truth of the unlabeled images: set {key}.seg_map_path and '
        f'add LoadAnnotations to {key}.pipeline, or remove the hook'
    )


def named_sources(dataset: Any) -> list[tuple[str, Any]]:
    """Names and data sets of a ``mmssl.MultiSourceDataset``; nothing for another data set."""
    return list(zip(getattr(dataset, 'source_names', []), getattr(dataset, 'datasets', []), strict=False))


def score_names() -> list[str]:
    """Names of the scalar scores, from the function that computes them."""
    pixel = torch.zeros(1, 2, 1)
    scores = fpl_diagnostics(pixel, pixel, torch.zeros(1, 1, dtype=torch.long))
    return sorted(name for name, value in scores.items() if value.dim() == 0)


def assignment_options(loss: nn.Module) -> dict[str, Any]:
    """Arguments of Alg. 1 that ``loss`` uses; none, and thus the defaults, if it is not FPL's."""
    options = getattr(loss, 'options', {})
    return {key: options[key] for key in ASSIGNMENT_KEYS if key in options}


def weight_options(loss: nn.Module) -> dict[str, Any]:
    """Arguments of the adaptive weight that ``loss`` uses, by the names of ``fuzzy_positive_weight``."""
    options = getattr(loss, 'options', {})
    return {key.removeprefix('weight_'): options[key] for key in WEIGHT_KEYS if key in options}
