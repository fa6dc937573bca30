"""Tells the objective of a partial-label classifier which samples there are."""

from typing import Any

from mmengine.hooks import Hook
from mmengine.runner import Runner

from mmssl.datasets.partial_label_samples import register_samples
from mmssl.registry import HOOKS
from mmssl.utils.model import unwrap_model


@HOOKS.register_module()
class SampleTargetsHook(Hook):
    """Gives ``mmssl.PRODENLoss`` and its like a row of targets for each sample of ``train_dataloader.dataset``.

    It also tells them how many iterations the training and a pass over the data have, for schedules that follow that.

    The rows are in the checkpoint. A resumed run goes on with them, and is refused if the candidate sets, their order
    or their number are others; a run that starts from the weights of another (``load_from``) begins with new ones.

    Raises:
        ValueError: Before training, if the model keeps no targets, samples have no candidate file, or a resumed run has
            other data.
    """

    # The rows are there before EMAHook copies the model, and before a checkpoint is loaded.
    priority = 'VERY_HIGH'

    def before_run(self, runner: Runner) -> None:
        """Make room for the samples, if there is a training."""
        loop = runner._train_loop
        if loop is not None and not isinstance(loop, dict):
            model = unwrap_model(runner.model)
            register_samples(model, loop.dataloader.dataset)
            model.objective.max_iters, model.objective.epoch_iters = loop.max_iters, len(loop.dataloader)

    def before_train(self, runner: Runner) -> None:
        """Check what a resumed run has loaded; a new run begins anew."""
        targets: Any = unwrap_model(runner.model).objective.targets
        if runner.iter > 0:
            targets.check_resumed()
        else:
            targets.reset()
