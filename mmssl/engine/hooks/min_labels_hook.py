"""Ends unsupervised segmentation when only few labels are left."""

from typing import Any

from mmengine.hooks import Hook
from mmengine.runner import Runner

from mmssl.registry import HOOKS
from mmssl.utils.values import check_number

# Entry of the message hub, and so of the checkpoint: after how many iterations the training was ended.
END = 'min_labels_end'


@HOOKS.register_module()
class MinLabelsHook(Hook):
    """Makes an iteration the last one if its image was segmented into at most ``min_labels`` labels.

    The last iteration is a whole one: it is logged, validated and saved as that at ``train_cfg.max_iters`` would be.
    (The released code of Kim et al. stops likewise, after the step of that iteration.) A run that ended so and is
    resumed stays as it is. The number is read on the host in every iteration, for which a GPU is waited for.

    Args:
        min_labels: >= 1. With scribbles, the released code takes the number of their labels. Default: 3.

    Raises:
        ValueError: ``min_labels`` is out of range, or, in the first iteration, the model counts no labels.
    """

    priority = 'VERY_HIGH'  # before the hooks that ask whether this iteration is the last one

    def __init__(self, min_labels: int = 3) -> None:
        check_number(min_labels, 'custom_hooks: mmssl.MinLabelsHook.min_labels', lambda number: number >= 1,
                     'an integer >= 1', int)  # fmt: skip
        self.min_labels = min_labels

    def before_train(self, runner: Runner) -> None:
        """Train no further if the run had ended before it was resumed."""
        if runner.iter > 0 and runner.message_hub.get_info(END) == runner.iter:
            runner.train_loop._max_iters = runner.iter

    def after_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: dict | None = None
    ) -> None:
        """Compare, and shorten the training."""
        if 'num_labels' not in (outputs or {}):
            raise ValueError('custom_hooks: mmssl.MinLabelsHook needs a model that counts its labels, such as '
                             f'mmssl.UnsupervisedSegmentor, got model.type={type(runner.model).__name__}; remove it')
        found = int(outputs['num_labels'])
        if found <= self.min_labels and runner.iter + 1 < runner.max_iters:
            runner.logger.info(f'{found} labels are left, at most {self.min_labels} are asked for: iteration '
                               f'{runner.iter + 1} is the last one')
            # `stop_training` would end the loop without the validation and the checkpoint of the last iteration.
            runner.train_loop._max_iters = runner.iter + 1
            runner.message_hub.update_info(END, runner.iter + 1)
