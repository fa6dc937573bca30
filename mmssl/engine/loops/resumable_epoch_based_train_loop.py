"""Epoch-based training whose resumed part is the rest of the run, also from the middle of an epoch."""

from typing import Any

from mmengine.runner import EpochBasedTrainLoop

from mmssl.engine.hooks.atomic_checkpoint_hook import LAST_VALIDATION
from mmssl.registry import LOOPS

from .skipping import advance


@LOOPS.register_module()
class ResumableEpochBasedTrainLoop(EpochBasedTrainLoop):
    """mmengine's ``EpochBasedTrainLoop``, with all its arguments; only a resumed run differs.

    - A checkpoint from the middle of an epoch (``CheckpointHook(by_epoch=False)``) goes on there, with the images that
      are left. mmengine would begin the epoch again and count its iterations twice.
    - If the validation of the last epoch was due and is not in the checkpoint (see ``mmssl.AtomicCheckpointHook``), it
      comes first.

    ``tools/train.py`` puts it in the place of the plain loop when it resumes.

    Args:
        runner: As ``EpochBasedTrainLoop``.
        dataloader: As ``EpochBasedTrainLoop``.
        **kwargs: As ``EpochBasedTrainLoop``.
    """

    def run(self) -> Any:
        """Train to the end."""
        self.runner.call_hook('before_train')
        if self._epoch > 0 and self._iter == self._epoch * len(self.dataloader):
            self._decide_current_val_interval()
            if self._validation_is_due() and self.runner.message_hub.get_info(LAST_VALIDATION) != self._iter:
                self.runner.logger.info(
                    f'the validation of epoch {self._epoch} is not in the checkpoint, so it comes first')
                self.runner.val_loop.run()
        while self._epoch < self._max_epochs and not self.stop_training:
            self.run_epoch()
            self._decide_current_val_interval()
            if self._validation_is_due():
                self.runner.val_loop.run()
        self.runner.call_hook('after_train')
        return self.runner.model

    def run_epoch(self) -> None:
        """Train one epoch, or what is left of it."""
        self.runner.call_hook('before_train_epoch')
        self.runner.model.train()
        length = len(self.dataloader)
        done = self._iter - self._epoch * length
        if not 0 <= done <= length:
            done = 0  # the length of the epoch has changed; there is no such position
        if done:
            advance(self.dataloader, done)
        for index, data_batch in enumerate(self.dataloader, start=done):
            self.run_iter(index, data_batch)
        self.runner.call_hook('after_train_epoch')
        self._epoch += 1

    def _validation_is_due(self) -> bool:
        return (self.runner.val_loop is not None and self._epoch >= self.val_begin
                and (self._epoch % self.val_interval == 0 or self._epoch == self._max_epochs))
