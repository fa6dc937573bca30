"""Gives an AEL model the training data, from which it chooses images by what it has learned."""

from mmengine.hooks import Hook
from mmengine.runner import Runner

from mmssl.datasets.donor_source import DonorSource, find_source
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
        dataset, sampler = runner.train_dataloader.dataset, runner.train_dataloader.sampler
        labeled, labeled_key, number = find_source(dataset, 'sup')
        unlabeled, unlabeled_key, _ = find_source(dataset, 'unsup_weak')
        ratio = getattr(sampler, 'source_ratio', None)
        model.attach_sources(
            labeled=DonorSource(labeled, labeled_key, 'sup', model.copy_paste_pipeline),
            unlabeled=DonorSource(unlabeled, unlabeled_key, 'unsup_weak'),
            class_names=labeled.metainfo.get('classes'),
            labeled_per_unit=None if ratio is None else ratio[number],
            resumed=runner.iter > 0,
        )
