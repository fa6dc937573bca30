"""Checkpoints that a kill at any moment leaves whole: the new one is complete before an old one goes."""

import os.path as osp
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from mmengine.dist import broadcast, get_world_size, is_main_process
from mmengine.fileio import LocalBackend
from mmengine.hooks import CheckpointHook
from mmengine.runner import Runner

from mmssl.registry import HOOKS
from mmssl.utils.atomic import remove_leftovers, write_atomically
from mmssl.utils.model import unwrap_model

# Entry of the message hub, and so of the checkpoint: the iteration of the last validation whose results are in it.
LAST_VALIDATION = 'last_validation'
# Entry of the message hub: files that are removed once the checkpoint that holds this entry is whole.
OUTDATED = 'outdated_ckpts'


@HOOKS.register_module()
class AtomicCheckpointHook(CheckpointHook):
    """mmengine's ``CheckpointHook``, with all its arguments, made safe against a kill at any moment.

    mmengine removes the old checkpoint, writes the new one under its final name, then writes ``last_checkpoint``. With
    ``max_keep_ckpts=1``, a kill in between leaves nothing to resume from. Here

    - a file gets its name when it is complete and on disk: checkpoints, ``best_*`` and ``last_checkpoint``;
    - old checkpoints are removed after the new one is whole, and an old ``best_*`` after the checkpoint that knows the
      new one; what a kill left to be removed is removed by the resumed run;
    - paths of an earlier place of the work dir are translated, so a moved or copied one resumes within itself; no file
      outside the folder of the checkpoints is ever removed;
    - a model with weights or statistics that are not finite is not saved: training stops, and the last good checkpoint
      stays (the loss of the step that broke them was still finite);
    - the checkpoint knows which validation it includes, so that a run killed during one makes up for it when resumed
      (``mmssl.ResumableIterBasedTrainLoop``), and scores are plain numbers, which ``weights_only=True`` loads.

    Before a checkpoint and before a validation, rank 0's buffers go to all ranks. A checkpoint holds those alone; with
    BatchNorm statistics of their own, the other ranks would go on from other ones after a resume, and the logged metric
    would be that of no model which was ever saved. (SyncBN's are equal as it is.)

    ``tools/train.py`` puts it in the place of a plain ``CheckpointHook``. On storage other than the local file system,
    whose backends write objects whole anyway, mmengine's order is kept.

    Args:
        *args: As ``CheckpointHook``.
        **kwargs: As ``CheckpointHook``.
    """

    _atomic = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._outdated: list[str] = []

    @classmethod
    def from_plain(cls, plain: CheckpointHook) -> 'AtomicCheckpointHook':
        """The same hook, with the settings and the priority of a plain one that was not used yet."""
        hook = cls.__new__(cls)
        hook.__dict__.update(plain.__dict__, _outdated=[])
        return hook

    def before_train(self, runner: Runner) -> None:
        """Find out where checkpoints go, and finish what an interrupted run did not get to do."""
        super().before_train(runner)
        backend = (self.backend_args or {}).get('backend', 'local')
        self._atomic = (
            isinstance(self.file_backend, LocalBackend) and self.file_client_args is None and
            backend in ('local', 'mmssl_atomic'))
        if not self._atomic:
            return
        self.backend_args = dict(backend='mmssl_atomic')
        self._removing_backend = self.file_backend
        hub = runner.message_hub
        if 'last_ckpt' in hub.runtime_info:
            # So that a resumed run saves a new best score with the last checkpoint, as the uninterrupted one did.
            self.last_ckpt = self._here(hub.get_info('last_ckpt'))
        for key in [name for name in hub.runtime_info if name == 'best_ckpt' or name.startswith('best_ckpt_')]:
            hub.update_info(key, self._here(hub.get_info(key)))
        if self.save_best and len(self.key_indicators) == 1:
            self.best_ckpt_path = hub.get_info('best_ckpt')
        elif self.save_best:
            self.best_ckpt_path_dict = {key: hub.get_info(f'best_ckpt_{key}') for key in self.key_indicators}
        if OUTDATED in hub.runtime_info:
            self._outdated = list(hub.get_info(OUTDATED))
        self._remove_outdated(runner)
        if is_main_process():
            for folder in {self.out_dir, runner.work_dir}:
                for name in remove_leftovers(folder):
                    runner.logger.info(f'removed {osp.join(folder, name)}, which a killed process left unfinished')

    def before_val_epoch(self, runner: Runner) -> None:
        """Let all ranks validate the model of rank 0, the one that is saved."""
        _share_buffers(runner)

    def after_val_epoch(self, runner: Runner, metrics: Mapping[str, Any]) -> None:
        """Save the best checkpoint."""
        runner.message_hub.update_info(LAST_VALIDATION, runner.iter)
        super().after_val_epoch(
            runner, {name: value.item() if isinstance(value, np.generic) else value for name, value in metrics.items()})

    def _save_checkpoint_with_step(self, runner: Runner, step: int, meta: dict[str, Any]) -> None:
        _share_buffers(runner)
        check_finite(runner)
        if not self._atomic:
            super()._save_checkpoint_with_step(runner, step, meta)
            return
        hub = runner.message_hub
        # One step is saved twice if its validation finds a new best score.
        if self.max_keep_ckpts > 0 and step not in list(self.keep_ckpt_ids)[-1:]:
            if len(self.keep_ckpt_ids) == self.max_keep_ckpts:
                self._outdated.append(self.filename_tmpl.format(self.keep_ckpt_ids.popleft()))
            self.keep_ckpt_ids.append(step)
            hub.update_info('keep_ckpt_ids', list(self.keep_ckpt_ids))
        name = self.filename_tmpl.format(step)
        self.last_ckpt = self.file_backend.join_path(self.out_dir, name)
        hub.update_info('last_ckpt', self.last_ckpt)
        self._outdated = [old for old in self._outdated if old != name]
        hub.update_info(OUTDATED, list(self._outdated))
        runner.save_checkpoint(
            self.out_dir,
            name,
            save_optimizer=self.save_optimizer,
            save_param_scheduler=self.save_param_scheduler,
            meta=meta,
            by_epoch=self.by_epoch,
            backend_args=self.backend_args,
            **self.args)
        if is_main_process():
            write_atomically(osp.join(runner.work_dir, 'last_checkpoint'), self.last_ckpt.encode())
        self._remove_outdated(runner)

    def _save_best_checkpoint(self, runner: Runner, metrics: dict[str, Any]) -> None:
        if not self._atomic:
            super()._save_best_checkpoint(runner, metrics)
            return
        self.file_backend = _RemovesLater(self._removing_backend, self.out_dir, self._outdated)
        try:
            super()._save_best_checkpoint(runner, metrics)
        finally:
            self.file_backend = self._removing_backend
        self._remove_outdated(runner)

    def _remove_outdated(self, runner: Runner) -> None:
        best = [getattr(self, 'best_ckpt_path', None), *getattr(self, 'best_ckpt_path_dict', {}).values()]
        used = {osp.basename(path) for path in (self.last_ckpt, *best) if path}
        if is_main_process():
            for name in self._outdated:
                path = osp.join(self.out_dir, name)
                if name not in used and self._removing_backend.isfile(path):
                    self._removing_backend.remove(path)
        self._outdated.clear()
        runner.message_hub.update_info(OUTDATED, [])

    def _here(self, path: str) -> str:
        here = self.file_backend.join_path(self.out_dir, osp.basename(path))
        return here if self.file_backend.isfile(here) else path


class _RemovesLater:
    """A file backend that notes what it is told to remove, if it is in the folder of the checkpoints."""

    def __init__(self, backend: LocalBackend, folder: str, names: list[str]) -> None:
        self._backend, self._folder, self._names = backend, folder, names

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def remove(self, path: str) -> None:
        if osp.dirname(path) == self._folder:
            self._names.append(osp.basename(path))


def check_finite(runner: Runner) -> None:
    """Refuse to go on with a broken model.

    Raises:
        FloatingPointError: Names the iteration and the first parameters and buffers that are not finite.
    """
    state = unwrap_model(runner.model).state_dict()
    wrong = [name for name, value in state.items() if value.is_floating_point() and not torch.isfinite(value).all()]
    if wrong:
        some = ', '.join(wrong[:3]) + (', ...' if len(wrong) > 3 else '')
        raise FloatingPointError(
            f'iteration {runner.iter + 1}: {len(wrong)} parameters or statistics of the model are not finite ({some}); '
            'stopped before it was saved, so the last checkpoint is good. Lower optim_wrapper.optimizer.lr, clip '
            'gradients (optim_wrapper.clip_grad), or look for images with extreme values'
        )


def _share_buffers(runner: Runner) -> None:
    if get_world_size() > 1:
        for buffer in runner.model.buffers():
            broadcast(buffer)
