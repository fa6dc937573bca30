"""Validates every sub-model of a semi-supervised model, side by side."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from mmengine.logging import print_log
from mmengine.runner import Runner, ValLoop
from mmengine.runner.amp import autocast
from torch.utils.data import DataLoader

from mmssl.registry import LOOPS
from mmssl.utils.model import unwrap_model


@LOOPS.register_module()
class SubModelValLoop(ValLoop):
    """ValLoop that evaluates student and teacher, or both students of CPS, in turn on the same data.

    Each metric is logged under the name of its model, ``student/mIoU``, ``teacher/mIoU``, and once more without a name
    for the model of ``semi_test_cfg.predict_on``, so that ``save_best='mIoU'`` means what it always did. Hooks see one
    validation, that of ``predict_on``: they are called for its batches alone.

    If a mean teacher is worse than its student in two validations in a row, by more than 2 % of the student's
    ``watch``, one warning says so; not before the unsupervised loss has begun and the teacher's average has forgotten
    its start.

    Args:
        runner: The runner.
        dataloader: As in ValLoop.
        evaluator: As in ValLoop.
        fp16: As in ValLoop.
        models: Names of the sub-models. ``None``: all that the model holds.
        watch: Metric by which teacher and student are compared, larger is better. ``None``: no comparison.

    Raises:
        ValueError: Before validation, if the model holds no such sub-model.
    """

    # Two validations: one may be noise.
    PATIENCE = 2
    MARGIN = 0.02

    def __init__(
        self,
        runner: Runner,
        dataloader: DataLoader | dict,
        evaluator: Any,
        fp16: bool = False,
        models: Sequence[str] | None = None,
        watch: str | None = 'mIoU',
    ) -> None:
        super().__init__(runner, dataloader, evaluator, fp16)
        if models is not None and (isinstance(models, str) or not isinstance(models, Sequence) or not models):
            raise ValueError(f'val_cfg.models must be None or a list of sub-models, got {models!r}')
        self.models = models
        self.watch = watch
        self._worse = 0
        self._has_warned = False

    def run(self) -> dict:
        """Validate all sub-models.

        Returns:
            The metrics of ``predict_on``, first, and those of every sub-model under its name.
        """
        names = self._sub_models()
        self.runner.call_hook('before_val')
        self.runner.call_hook('before_val_epoch')
        self.runner.model.eval()
        main = unwrap_model(self.runner.model).semi_test_cfg['predict_on']
        found = {}
        for name in dict.fromkeys([*names, main]):
            # The evaluator's own tables, one for each sub-model, do not say whose they are.
            self.runner.logger.info(f'validation of {name}')
            with predicting(self.runner.model, name):
                found[name] = self._evaluate(with_hooks=name == main)
        metrics = dict(found[main])
        for name in found:
            metrics.update({f'{name}/{key}': value for key, value in found[name].items()})
        self._compare(found)
        self.runner.call_hook('after_val_epoch', metrics=metrics)
        self.runner.call_hook('after_val')
        return metrics

    def _sub_models(self) -> list[str]:
        model = unwrap_model(self.runner.model)
        held = getattr(model, 'MODELS_HELD', ())
        if not held:
            raise ValueError(
                'val_cfg.type: mmssl.SubModelValLoop needs a semi-supervised model of mmssl, got '
                f'model.type={type(model).__name__}; use ValLoop'
            )
        names = list(held if self.models is None else self.models)
        for name in names:
            if name not in (*held, 'ensemble'):
                raise ValueError(f'val_cfg.models: the model holds {[*held, "ensemble"]}, got {name!r}')
        return names

    def _evaluate(self, with_hooks: bool) -> dict[str, Any]:
        """Metrics of the model that predicts at present."""
        for index, data_batch in enumerate(self.dataloader):
            if with_hooks:
                self.run_iter(index, data_batch)
            else:
                self._predict(data_batch)
        return self.evaluator.evaluate(len(self.dataloader.dataset))

    @torch.no_grad()
    def _predict(self, data_batch: Any) -> None:
        with autocast(enabled=self.fp16):
            outputs = self.runner.model.val_step(data_batch)
        self.evaluator.process(data_samples=outputs, data_batch=data_batch)

    def _compare(self, found: dict[str, dict[str, Any]]) -> None:
        """Warn once about a teacher that stays worse than its student."""
        model = unwrap_model(self.runner.model)
        student, teacher = (found.get(name, {}).get(self.watch) for name in ('student', 'teacher'))
        if self._has_warned or student is None or teacher is None:
            return
        begun = model.iterations_done > model.semi_train_cfg['unsup_begin']
        worse = begun and getattr(model, 'teacher_is_warm', False) and teacher < (1 - self.MARGIN) * student
        self._worse = self._worse + 1 if worse else 0
        if self._worse == self.PATIENCE:
            self._has_warned = True
            print_log(
                f'the teacher is worse than its student, {self.watch} {teacher:.2f} against {student:.2f}, in the '
                f'last {self.PATIENCE} validations, so its pseudo labels hold the student back: raise the momentum of '
                'mmssl.MeanTeacherHook in custom_hooks (the teacher lags behind), or look at its `buffers` and at '
                'model.semi_train_cfg.teacher_mode (running statistics that do not fit). (Said once.)',
                logger='current',
                level=logging.WARNING,
            )


@contextmanager
def predicting(model: Any, name: str) -> Iterator[None]:
    """Inside the block, the sub-model ``name`` of a (wrapped) semi-supervised model predicts."""
    options = unwrap_model(model).semi_test_cfg
    before = options['predict_on']
    options['predict_on'] = name
    try:
        yield
    finally:
        options['predict_on'] = before
