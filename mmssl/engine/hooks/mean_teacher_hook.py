"""Updates the teacher of a mean-teacher model after every optimizer step."""

import logging
from typing import Any

from mmengine.hooks import EMAHook, Hook
from mmengine.logging import print_log
from mmengine.optim import OptimWrapperDict
from mmengine.runner import Runner

from mmssl.functional.ema import BUFFER_RULES, ema_momentum
from mmssl.registry import HOOKS
from mmssl.utils.model import unwrap_model


@HOOKS.register_module()
class MeanTeacherHook(Hook):
    r"""Keeps the teacher of ``mmssl.MeanTeacherSegmentor`` and its like the moving average of the student.

    Before iteration 0 the teacher becomes a copy of the student, buffers included, whatever was loaded. After each
    optimizer step, with gradient accumulation only then,

    .. math:: \theta' \leftarrow (1 - m_t)\, \theta' + m_t\, \theta, \qquad m_t = \max(1 / (t + 1), m),

    t being the number of updates so far; a resumed run goes on with its t.

    Args:
        momentum: m, in [0, 1], weight of the *student*: a paper's decay of 0.999 is 0.001. 1 makes the teacher the
            student's copy. Default: 0.001.
        warmup: Whether m_t starts at 1 and falls to m, as in AEL and UniMatch V2, so that the first pseudo labels do
            not come from the initial weights. Default: True.
        buffers: What happens to floating-point buffers, the running statistics of BatchNorm: ``'own'``, those of the
            teacher's own forwards, which needs ``semi_train_cfg.teacher_mode='train'``; ``'average'``, averaged as the
            parameters; ``'copy'``, the student's present ones. Integer buffers are copied, never averaged. Default:
            None, which is ``'own'`` for a teacher in train mode and ``'average'`` for one in eval mode.
        interval: Optimizer steps between two updates, >= 1. Default: 1.

    Raises:
        ValueError: If an argument is out of its range; before training, if the model has no teacher, or ``buffers``
            does not fit its mode.
    """

    # Before the checkpoint of the same iteration is written.
    priority = 'NORMAL'

    def __init__(
        self, momentum: float = 0.001, warmup: bool = True, buffers: str | None = None, interval: int = 1
    ) -> None:
        key = f'custom_hooks: mmssl.{type(self).__name__}'
        is_number = isinstance(momentum, (int, float)) and not isinstance(momentum, bool)
        if not is_number or not 0 <= momentum <= 1:
            raise ValueError(
                f"{key}.momentum must be in [0, 1], the student's weight in the average (a decay of 0.999 is 0.001), "
                f'got {momentum!r}'
            )
        if 0.5 < momentum < 1:
            print_log(
                f'{key}.momentum is {momentum}: the teacher takes that much of the student at every step and averages '
                f'almost nothing. A decay of {momentum} is momentum={1 - momentum:.3g}',
                logger='current',
                level=logging.WARNING,
            )
        if not isinstance(warmup, bool):
            raise ValueError(f'{key}.warmup must be True or False, got {warmup!r}')
        if buffers is not None and buffers not in BUFFER_RULES:
            raise ValueError(f'{key}.buffers must be None or one of {list(BUFFER_RULES)}, got {buffers!r}')
        if isinstance(interval, bool) or not isinstance(interval, int) or interval < 1:
            raise ValueError(f'{key}.interval must be an integer >= 1, got {interval!r}')
        self.momentum, self.warmup, self.buffers, self.interval = float(momentum), warmup, buffers, interval
        self.rule = 'average'

    def before_train(self, runner: Runner) -> None:
        """Check that hook and model fit, and before iteration 0 make the teacher a copy of the student."""
        model, key = unwrap_model(runner.model), f'custom_hooks: mmssl.{type(self).__name__}'
        if not getattr(model, 'has_teacher', False):
            raise ValueError(
                f'{key} needs a model with a teacher, such as mmssl.MeanTeacherSegmentor, or '
                "mmssl.PseudoLabelClassifier with model.semi_train_cfg.teacher='ema', got "
                f'model.type={type(model).__name__}; remove the hook'
            )
        if sum(isinstance(hook, MeanTeacherHook) for hook in runner.hooks) > 1:
            raise ValueError(f'{key} is there twice, so the teacher would be updated twice a step; remove one')
        mode = model.semi_train_cfg['teacher_mode']
        self.rule = self.buffers or ('own' if mode == 'train' else 'average')
        if self.buffers == 'own' and mode != 'train':
            raise ValueError(
                f"{key}.buffers='own' keeps the running statistics of the teacher's own forwards, but in "
                f"model.semi_train_cfg.teacher_mode={mode!r} these move none; set teacher_mode='train', or buffers to "
                "'average' or 'copy'"
            )
        if self.buffers == 'average' and mode == 'train' and holds_statistics(model.teacher):
            raise ValueError(
                f"{key}.buffers='average' averages running statistics that the forwards of a teacher in "
                "model.semi_train_cfg.teacher_mode='train' overwrite; set buffers to 'own' (AEL) or 'copy', or "
                "teacher_mode to 'eval'"
            )
        if any(isinstance(hook, EMAHook) for hook in runner.hooks):
            print_log(
                'custom_hooks: EMAHook averages student and teacher once more and evaluates that; with '
                'mmssl.MeanTeacherHook the teacher is the average already, so EMAHook should go',
                logger='current',
                level=logging.WARNING,
            )
        model.follow_teacher()
        if runner.iter == 0:
            model.initialize_teacher()

    def after_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        """Update the teacher if the optimizer has made a step."""
        wrapper = runner.optim_wrapper
        if isinstance(wrapper, OptimWrapperDict):
            wrapper = next(iter(wrapper.values()))
        # Both count the iteration that has just been trained.
        if not wrapper.should_update() or (wrapper._inner_count // wrapper._accumulative_counts) % self.interval:
            return
        model = unwrap_model(runner.model)
        model.update_teacher(ema_momentum(model.num_teacher_updates, self.momentum, self.warmup), self.rule)


def holds_statistics(module: Any) -> bool:
    """Whether ``module`` has floating-point buffers that a checkpoint holds, such as running statistics."""
    state = module.state_dict(keep_vars=True)
    return any(name in state and buffer.is_floating_point() for name, buffer in module.named_buffers())
