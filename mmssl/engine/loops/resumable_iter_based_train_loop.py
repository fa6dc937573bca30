"""Iteration-based training whose resumed part is the rest of the run, and begins at once."""

from typing import Any

from mmengine.runner import BaseLoop, IterBasedTrainLoop

from mmssl.engine.hooks.atomic_checkpoint_hook import LAST_VALIDATION
from mmssl.registry import LOOPS

from .skipping import NotStarted, SkippingIterator


@LOOPS.register_module()
class ResumableIterBasedTrainLoop(IterBasedTrainLoop):
    """mmengine's ``IterBasedTrainLoop``, with all its arguments; only a resumed run differs.

    - It goes to its position without loading the batches before it, with any sampler. (mmengine 0.10.7 loads them all
      again, ``onedl-mmengine`` only where the sampler cannot skip.)
    - The checkpoint is written before the validation of its iteration. If that validation was due and is not in the
      checkpoint (see ``mmssl.AtomicCheckpointHook``), it comes first, so that logs and best scores are those of a run
      that was not interrupted.

    ``tools/train.py`` puts it in the place of the plain loop when it resumes.

    Args:
        runner: As ``IterBasedTrainLoop``.
        dataloader: As ``IterBasedTrainLoop``.
        **kwargs: As ``IterBasedTrainLoop``.
    """

    def __init__(self, runner: Any, dataloader: Any, **kwargs: Any) -> None:
        BaseLoop.__init__(self, runner, dataloader)
        loader = self.dataloader
        super().__init__(runner, NotStarted(loader), **kwargs)
        self.dataloader = loader
        self.dataloader_iterator = SkippingIterator(loader)

    def run(self) -> Any:
        """Train to the end."""
        self.runner.call_hook('before_train')
        self.runner.call_hook('before_train_epoch')
        if self._iter > 0:
            if not getattr(self, 'fast_forward_on_resume', False):
                self.dataloader_iterator.skip_iter(self._iter)
            self._decide_current_val_interval()
            if self._validation_is_due() and self.runner.message_hub.get_info(LAST_VALIDATION) != self._iter:
                self.runner.logger.info(
                    f'the validation of iteration {self._iter} is not in the checkpoint, so it comes first')
                self.runner.val_loop.run()
        while self._iter < self._max_iters and not self.stop_training:
            self.runner.model.train()
            self.run_iter(next(self.dataloader_iterator))
            self._decide_current_val_interval()
            if self._validation_is_due():
                self.runner.val_loop.run()
        self.runner.call_hook('after_train_epoch')
        self.runner.call_hook('after_train')
        return self.runner.model

    def _validation_is_due(self) -> bool:
        return (self.runner.val_loop is not None and self._iter >= self.val_begin
                and (self._iter % self.val_interval == 0 or self._iter == self._max_iters))
