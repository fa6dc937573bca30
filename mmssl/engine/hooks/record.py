"""Asking a semi-supervised model to keep what its unsupervised loss saw in one iteration."""

from typing import Any

from mmengine.hooks import Hook
from mmengine.runner import Runner

from mmssl.utils.model import unwrap_model
from mmssl.utils.values import check_number

KINDS = dict(
    segment=('segmentor', 'CrossPseudoSupervision'),
    classify=('classifier', 'PseudoLabelClassifier'),
)  # fmt: skip


class RecordingHook(Hook):
    """Every ``interval`` iterations, lets the model record an iteration and hands the record to :meth:`on_record`.

    Between those iterations the model records nothing and the hook costs nothing.

    Args:
        interval: Iterations between two records, >= 1; as in LoggerHook, iteration ``interval`` is the first.

    Raises:
        ValueError: If ``interval`` is not a positive integer, or, before training, if the model does not record, or
            records of the other task.
    """

    # What the model does whose records this hook reads: ``'segment'`` or ``'classify'``.
    TASK = 'segment'

    def __init__(self, interval: int) -> None:
        key = f'custom_hooks: mmssl.{type(self).__name__}.interval'
        check_number(interval, key, lambda number: number >= 1, 'an integer >= 1', int)
        self.interval = interval

    def before_train(self, runner: Runner) -> None:
        """Check that the model can record."""
        model = unwrap_model(runner.model)
        if not hasattr(model, 'recording') or not hasattr(model, self.TASK):
            kind, example = KINDS[self.TASK]
            raise ValueError(
                f'custom_hooks: mmssl.{type(self).__name__} needs a semi-supervised {kind} of mmssl, such as '
                f'mmssl.{example}, got model.type={type(model).__name__}; remove the hook'
            )

    def before_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None) -> None:
        """Ask for a record of this iteration, and let the last one go."""
        model = unwrap_model(runner.model)
        model.record = None
        if self.every_n_train_iters(runner, self.interval):
            model.recording = True

    def after_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        """Use the record."""
        if self.every_n_train_iters(runner, self.interval):
            model = unwrap_model(runner.model)
            model.recording = False
            if model.record is not None:
                self.on_record(runner, model, model.record)

    def after_train(self, runner: Runner) -> None:
        """Let the last record go."""
        unwrap_model(runner.model).record = None

    def on_record(self, runner: Runner, model: Any, record: Any) -> None:
        """What the hook does with a record."""
        raise NotImplementedError(f'{type(self).__name__} must define `on_record`')
