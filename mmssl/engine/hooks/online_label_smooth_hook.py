"""Makes the soft targets of online label smoothing at the end of an epoch."""

from typing import Any

from mmengine.hooks import Hook
from mmengine.runner import IterBasedTrainLoop, Runner

from mmssl.registry import HOOKS
from mmssl.utils.model import unwrap_model
from mmssl.utils.values import check_number


@HOOKS.register_module()
class OnlineLabelSmoothHook(Hook):
    """Calls ``update_targets`` of every ``mmssl.OnlineLabelSmoothLoss`` in the model, before a checkpoint is written.

    Args:
        interval: Iterations that count as an epoch, >= 1; None for the epochs of the loop, which an iteration-based one
            does not have.

    Raises:
        ValueError: If ``interval`` is out of range, or, before training, is missing; or if the model has no such loss.
    """

    priority = 'NORMAL'

    def __init__(self, interval: int | None = None) -> None:
        if interval is not None:
            check_number(interval, 'custom_hooks: mmssl.OnlineLabelSmoothHook.interval', lambda number: number >= 1,
                         'an integer >= 1, or None for epochs', int)
        self.interval = interval
        self.losses: list[Any] = []

    def before_train(self, runner: Runner) -> None:
        """Find the losses."""
        if self.interval is None and isinstance(runner.train_loop, IterBasedTrainLoop):
            raise ValueError('custom_hooks: mmssl.OnlineLabelSmoothHook.interval must be given under an '
                             'iteration-based loop, which has no epochs: the iterations after which the soft targets '
                             'are made anew')
        model = unwrap_model(runner.model)
        self.losses = [module for module in model.modules() if hasattr(module, 'update_targets')]
        if not self.losses:
            raise ValueError('custom_hooks: mmssl.OnlineLabelSmoothHook found no mmssl.OnlineLabelSmoothLoss in the '
                             'model; remove the hook')
        for loss in self.losses:
            loss.followed = True

    def after_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        """End of an interval."""
        if self.interval is not None and self.every_n_train_iters(runner, self.interval):
            self.update()

    def after_train_epoch(self, runner: Runner) -> None:
        """End of an epoch."""
        if self.interval is None:
            self.update()

    def update(self) -> None:
        """Make the soft targets anew."""
        for loss in self.losses:
            loss.update_targets()
