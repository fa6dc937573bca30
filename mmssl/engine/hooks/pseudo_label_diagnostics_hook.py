"""How good the pseudo labels of classification are, and what each class has of them, logged every so often."""

from typing import Any

from mmengine.dist import all_reduce, get_world_size
from mmengine.runner import Runner

from mmssl.functional.pseudo_label_quality import pseudo_label_counts, pseudo_label_scores
from mmssl.registry import HOOKS

from .record import RecordingHook


@HOOKS.register_module()
class PseudoLabelDiagnosticsHook(RecordingHook):
    """Logs accuracy, thresholds and class shares of the pseudo labels of the batch in all processes.

    Off iterations cost nothing. ``unsup_pseudo_acc`` is the accuracy of all pseudo labels of the batch and
    ``unsup_selected_acc`` that of those that count (weight > 0), where the data set gives the unlabeled images' truth,
    which reaches no loss; a share of nothing is not logged. For each class: ``unsup_class_share/<class>``, of the
    pseudo labels, ``unsup_class_selected/<class>``, of those that count, and, where the method has thresholds for
    classes, ``unsup_class_threshold/<class>``. To draw them:
    ``tools/analysis/plot_logs.py work_dir --overlay --keys 'unsup_class_share/*' --out shares.png``.

    Args:
        interval: Iterations between two measurements, >= 1. Default: 50.
        per_class: Whether shares and thresholds of the classes are logged. Default: True.

    Raises:
        ValueError: If an argument is out of its range, or, before training, if the model is no semi-supervised
            classifier.
    """

    TASK = 'classify'
    # Before the logger hook of the same iteration.
    priority = 'NORMAL'

    def __init__(self, interval: int = 50, per_class: bool = True) -> None:
        super().__init__(interval)
        if not isinstance(per_class, bool):
            raise ValueError(
                f'custom_hooks: mmssl.PseudoLabelDiagnosticsHook.per_class must be True or False, got {per_class!r}'
            )
        self.per_class = per_class

    def on_record(self, runner: Runner, model: Any, record: Any) -> None:
        """Measure and hand the numbers to the log."""
        counts = pseudo_label_counts(record.target_logits.argmax(dim=1), record.weight > 0, record.truth,
                                     record.target_logits.shape[1])  # fmt: skip
        if get_world_size() > 1:
            all_reduce(counts, 'sum')
        scores, shares = pseudo_label_scores(counts)
        numbers = dict(unsup_pseudo_acc=scores['accuracy'], unsup_selected_acc=scores['selected_accuracy'])
        if self.per_class:
            names = class_names(runner, len(shares['share']))
            groups = dict(unsup_class_share=shares['share'], unsup_class_selected=shares['selected_share'])
            if record.class_thresholds is not None:
                groups['unsup_class_threshold'] = record.class_thresholds
            for key, values in groups.items():
                numbers.update({f'{key}/{name}': value for name, value in zip(names, values.tolist(), strict=True)})
        for key, value in numbers.items():
            value = float(value)
            if value == value:  # no share of nothing
                runner.message_hub.update_scalar(f'train/{key}', value)


def class_names(runner: Runner, count: int) -> list[str]:
    """Names of the classes of the training data, or their numbers."""
    names = (getattr(runner.train_dataloader.dataset, 'metainfo', None) or {}).get('classes') or ()
    return [str(name) for name in names] if len(names) == count else [str(index) for index in range(count)]
