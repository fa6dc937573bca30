"""Gives an AEL model the training data, from which it chooses images by what it has learned."""

from mmengine.hooks import Hook
from mmengine.runner import Runner

from mmssl.datasets.donor_source import attach_sources
from mmssl.registry import HOOKS
from mmssl.utils.model import unwrap_model


@HOOKS.register_module()
class AELHook(Hook):
    """Before training, hands the labeled and the unlabeled source to ``mmssl.AELSegmentor``.

    The model then sizes its presence bank, finds the ids of the classes that the config names, and loads the donors of
    adaptive CutMix and adaptive copy-paste itself. Workers of the data loader could not: which image is needed depends
    on the iteration before. Without this hook such a model raises at its first iteration.

    Raises:
        ValueError: Before training, if the model takes no sources, if not exactly one source fills the branches ``sup``
            and ``unsup_weak``, if a class of the config does not exist, or if a resumed run has another unlabeled list.
    """

    priority = 'NORMAL'

    def before_train(self, runner: Runner) -> None:
        """Find the sources and hand them over."""
        model = unwrap_model(runner.model)
        if not hasattr(model, 'attach_sources'):
            raise ValueError(
                'custom_hooks: mmssl.AELHook needs a model that loads images itself, mmssl.AELSegmentor, got '
                f'model.type={type(model).__name__}; remove the hook'
            )
        loader = runner.train_dataloader
        ratio = getattr(loader.sampler, 'source_ratio', None)
        attach_sources(model, loader.dataset, ratio, resumed=runner.iter > 0)
