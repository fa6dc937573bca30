"""The teacher of a semi-supervised model: a sub-module that is the moving average of the student."""

from typing import Any

import torch
from mmengine.dist import all_reduce_params, get_world_size
from torch import nn

from mmssl.functional.ema import BUFFER_RULES, ema_update_
from mmssl.models.semi_base import check_choice


class EMATeacher:
    """Mix-in of models that hold a ``student`` and a ``teacher``, which ``mmssl.MeanTeacherHook`` updates.

    It comes before the semi-supervised base class, whose ``__init__`` builds both; then :meth:`init_teacher` is called.
    ``semi_train_cfg.teacher_mode`` is the teacher's mode while the model is in train mode. A model whose options ask
    for no teacher has none, and :attr:`has_teacher` is false.
    """

    def init_teacher(self) -> None:
        """Freeze the teacher and start its count.

        Raises:
            ValueError: If ``semi_train_cfg.teacher_mode`` is not allowed.
        """
        check_choice(self.semi_train_cfg['teacher_mode'], ('eval', 'train'), 'semi_train_cfg.teacher_mode')
        if not self.has_teacher:
            return
        self.teacher.requires_grad_(False)
        # Updates of the teacher so far, for the warm-up of its momentum; the host's copy keeps the GPU from being read.
        self.register_buffer('teacher_updates', torch.zeros((), dtype=torch.long))
        self._host_updates: int | None = None
        self._last_momentum = 0.0
        self._teacher_is_followed = False
        self._losses_computed = 0
        self.teacher.train(self.semi_train_cfg['teacher_mode'] == 'train')

    @property
    def has_teacher(self) -> bool:
        """Whether the model holds a teacher."""
        return 'teacher' in self._modules

    def train(self, mode: bool = True) -> 'EMATeacher':
        """Set the mode of all but the teacher, which is in ``semi_train_cfg.teacher_mode`` while training."""
        super().train(mode)
        if self.has_teacher:
            self.teacher.train(mode and self.semi_train_cfg['teacher_mode'] == 'train')
        return self

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self._host_updates = None

    @property
    def num_teacher_updates(self) -> int:
        """Updates of the teacher so far."""
        if self._host_updates is None:
            self._host_updates = int(self.teacher_updates)
        return self._host_updates

    @property
    def teacher_is_warm(self) -> bool:
        """Whether the teacher has forgotten its start: the average spans no more than the updates that there were."""
        return self.num_teacher_updates * self._last_momentum > 1

    def follow_teacher(self) -> None:
        """Say that something updates the teacher; without it, the second training iteration raises."""
        self._teacher_is_followed = True

    @torch.no_grad()
    def initialize_teacher(self) -> None:
        """Copy the student's parameters and buffers, whatever their kind, to the teacher, and count from 0."""
        self.follow_teacher()
        self.restart_count()
        self._host_updates = 0
        self.teacher_updates.zero_()
        for average, module in self.averaged_modules():
            for part in ('parameters', 'buffers'):
                ema_update_(*(list(getattr(model, part)()) for model in (average, module)), momentum=1.0)

    def averaged_modules(self) -> list[tuple[nn.Module, nn.Module]]:
        """Pairs of a moving average and what it follows: the teacher first; the others, if any, have no buffers."""
        return [(self.teacher, self.student)]

    @torch.no_grad()
    def update_teacher(self, momentum: float, buffers: str = 'average') -> None:
        """Move the teacher toward the student.

        With several processes, floating-point buffers (running statistics) become the mean over the processes first,
        so that every process has the same teacher.

        Args:
            momentum: m of ``teacher = (1 - m) * teacher + m * student``, in [0, 1].
            buffers: What happens to floating-point buffers: ``'average'`` as parameters, ``'copy'`` the student's, or
                ``'own'``: the teacher keeps those of its own forwards (until the unsupervised loss begins it has none,
                and gets the student's). Integer buffers are copied, never averaged.

        Raises:
            ValueError: If ``buffers`` is none of these.
        """
        if buffers not in BUFFER_RULES:
            raise ValueError(f'update_teacher: `buffers` must be one of {BUFFER_RULES}, got {buffers!r}')
        self.follow_teacher()
        count = self.num_teacher_updates + 1
        self._host_updates, self._last_momentum = count, momentum
        self.teacher_updates.fill_(count)
        for average, module in self.averaged_modules():
            ema_update_(list(average.parameters()), list(module.parameters()), momentum)
        if buffers == 'own':
            if self._unsupervised_has_begun():
                average_over_ranks(self.teacher)
                return
            buffers = 'copy'
        average_over_ranks(self.student)
        # Constants that no checkpoint holds, such as attention masks, may be infinite: to average them would give NaN.
        saved = self.teacher.state_dict(keep_vars=True).keys()
        averaged, copied = ([], []), ([], [])
        for (name, own), value in zip(self.teacher.named_buffers(), self.student.buffers(), strict=True):
            pair = averaged if buffers == 'average' and name in saved else copied
            pair[0].append(own)
            pair[1].append(value)
        ema_update_(*averaged, momentum)
        ema_update_(*copied, 1.0)

    def _unsupervised_has_begun(self) -> bool:
        # With a weight of 0 it never does, and the teacher makes no forwards.
        cfg = self.semi_train_cfg
        return cfg['unsup_weight'] > 0 and self.iterations_done > cfg['unsup_begin']

    def check_that_teacher_follows(self) -> None:
        """Count a training iteration.

        Raises:
            ValueError: In the second one, if nothing updates the teacher.
        """
        if self._losses_computed and not self._teacher_is_followed:
            raise ValueError(
                f'custom_hooks must hold mmssl.MeanTeacherHook, or the teacher of mmssl.{type(self).__name__} never '
                "changes: add dict(type='mmssl.MeanTeacherHook', momentum=0.001). (A list of "
                'custom_hooks in an inheriting config replaces the inherited one.) In a training loop of your own, '
                'call model.initialize_teacher() before the first and model.update_teacher(momentum) after every '
                'optimizer step'
            )
        self._losses_computed += 1


def average_over_ranks(module: nn.Module) -> None:
    """Make the floating-point buffers of ``module`` the mean over all processes; nothing to do in a single one."""
    if get_world_size() > 1:
        floating = [buffer for buffer in module.buffers() if buffer.is_floating_point()]
        if floating:
            all_reduce_params(floating, coalesce=True, op='mean')
