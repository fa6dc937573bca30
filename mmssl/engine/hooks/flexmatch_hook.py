"""Tells FlexMatch how many unlabeled images there are."""

from typing import Any

from mmengine.hooks import Hook
from mmengine.runner import Runner

from mmssl.datasets.donor_source import find_source
from mmssl.registry import HOOKS
from mmssl.utils.model import unwrap_model


@HOOKS.register_module()
class FlexMatchHook(Hook):
    """Gives ``mmssl.FlexMatchThreshold`` a row for each image of the unlabeled source.

    Raises:
        ValueError: Before training, if the model has no such threshold, if not exactly one plain data set fills the
            branch ``unsup_weak``, or if a resumed run has another number of images.
    """

    # The table has its size before EMAHook copies the model.
    priority = 'VERY_HIGH'

    def before_run(self, runner: Runner) -> None:
        """Size the table, if there is a training."""
        loop = runner._train_loop
        if loop is None or isinstance(loop, dict):
            return
        source, _, _ = find_source(loop.dataloader.dataset, 'unsup_weak', 'mmssl.FlexMatchHook')
        self._threshold(runner).set_num_samples(len(source))

    def before_train(self, runner: Runner) -> None:
        """Check what a resumed run has loaded."""
        if runner.iter > 0:
            self._threshold(runner).check_resumed()

    def _threshold(self, runner: Runner) -> Any:
        model = unwrap_model(runner.model)
        threshold = getattr(model, 'threshold', None)
        if not hasattr(threshold, 'set_num_samples'):
            raise ValueError(
                'custom_hooks: mmssl.FlexMatchHook needs a model with model.semi_train_cfg.threshold '
                f'mmssl.FlexMatchThreshold, got model.type={type(model).__name__} with the threshold '
                f'{type(threshold).__name__}; remove the hook'
            )
        return threshold
