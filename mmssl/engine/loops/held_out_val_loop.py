"""Validates on a second data set as well, such as a part of the training data that was held out."""

from typing import Any

import torch
from mmengine.runner import Runner, ValLoop
from mmengine.runner.amp import autocast
from torch.utils.data import DataLoader

from mmssl.registry import LOOPS
from mmssl.utils.image_paths import leaf_datasets


@LOOPS.register_module()
class HeldOutValLoop(ValLoop):
    """ValLoop that also evaluates held-out data, with metrics of its own, so that they may choose the checkpoint.

    All metrics are logged as those of one validation. Hooks are called for the batches of ``val_dataloader`` alone.

    Args:
        runner: The runner.
        dataloader: As in ValLoop.
        evaluator: As in ValLoop.
        held_out_dataloader: Config as of ``val_dataloader``, for samples that are not trained on.
        held_out_evaluator: Config as of ``val_evaluator``.
        fp16: As in ValLoop.

    Raises:
        ValueError: Before training, if samples of a ``mmssl.PartialLabelDataset`` are both trained on and held out;
            after a validation, if both evaluators have a metric of one name.
    """

    def __init__(
        self,
        runner: Runner,
        dataloader: DataLoader | dict,
        evaluator: Any,
        held_out_dataloader: DataLoader | dict,
        held_out_evaluator: Any,
        fp16: bool = False,
    ) -> None:
        super().__init__(runner, dataloader, evaluator, fp16)
        if isinstance(held_out_dataloader, dict):
            held_out_dataloader = runner.build_dataloader(held_out_dataloader, seed=runner.seed)
        self.held_out_dataloader = held_out_dataloader
        self.held_out_evaluator = runner.build_evaluator(held_out_evaluator)
        self.held_out_evaluator.dataset_meta = getattr(held_out_dataloader.dataset, 'metainfo', None)
        self._check_that_parts_are_apart()

    def run(self) -> dict:
        """Validate on both data sets.

        Returns:
            The metrics of both.
        """
        self.runner.call_hook('before_val')
        self.runner.call_hook('before_val_epoch')
        self.runner.model.eval()
        for index, data_batch in enumerate(self.dataloader):
            self.run_iter(index, data_batch)
        metrics = self.evaluator.evaluate(len(self.dataloader.dataset))
        for data_batch in self.held_out_dataloader:
            self._predict(data_batch)
        found = self.held_out_evaluator.evaluate(len(self.held_out_dataloader.dataset))
        if shared := sorted(set(metrics) & set(found)):
            raise ValueError(
                f'val_cfg.held_out_evaluator: val_evaluator has the metrics {shared} too; give one of them another '
                '`prefix`'
            )
        metrics = {**metrics, **found}
        self.runner.call_hook('after_val_epoch', metrics=metrics)
        self.runner.call_hook('after_val')
        return metrics

    @torch.no_grad()
    def _predict(self, data_batch: Any) -> None:
        with autocast(enabled=self.fp16):
            outputs = self.runner.model.val_step(data_batch)
        self.held_out_evaluator.process(data_samples=outputs, data_batch=data_batch)

    def _check_that_parts_are_apart(self) -> None:
        loop = getattr(self.runner, '_train_loop', None)
        trained = getattr(getattr(loop, 'dataloader', None), 'dataset', None)
        for mine in _partial_label_datasets(self.held_out_dataloader.dataset):
            for theirs in _partial_label_datasets(trained):
                same_file = mine.candidate_file == theirs.candidate_file
                if same_file and (shared := len(set(mine.indices) & set(theirs.indices))):
                    raise ValueError(
                        f'val_cfg.held_out_dataloader: {shared} of {len(mine.indices)} samples are trained on as well; '
                        f'the data sets of {mine.candidate_file!r} need one `held_out` and one `seed`, and '
                        f"part='train' and part='held_out'; got held_out={theirs.held_out}, seed={theirs.seed}, "
                        f'part={theirs.part!r} in train_dataloader and held_out={mine.held_out}, seed={mine.seed}, '
                        f'part={mine.part!r} here'
                    )


def _partial_label_datasets(dataset: Any) -> list[Any]:
    """Those inside a data set, which may be made of several."""
    return [part for part in leaf_datasets(dataset, 'candidate_file') if hasattr(part, 'candidate_file')]
