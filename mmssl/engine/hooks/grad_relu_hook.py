"""Grad-ReLU of LayerMatch: layers that learn from supervised losses alone."""

import logging
from collections.abc import Sequence
from typing import Any

from mmengine.hooks import Hook
from mmengine.logging import print_log
from mmengine.runner import Runner

from mmssl.models.layerwise import LayerwiseMixin
from mmssl.models.supervised_only import SupervisedOnly
from mmssl.registry import HOOKS
from mmssl.utils.layer_names import find_layers
from mmssl.utils.model import unwrap_model


@HOOKS.register_module()
class GradReLUHook(Hook):
    r"""Grad-ReLU (LayerMatch, Sec. 4.2.1): no loss but the supervised ones changes the named layers' parameters.

    What comes before the layers still learns from all losses, through the layers as they are:

    .. math:: \nabla_W \mathcal{L} = 0 \quad\text{if } W \text{ is a parameter of a named layer and } \mathcal{L} \ne
              \mathcal{L}_s.

    It is a rule about parameters, no rectifier of gradients. The gradient of the layers equals that of training with
    the supervised losses alone to the last bit, also under AMP, accumulation, DDP and gradient surgery.

    - A semi-supervised model of mmssl runs unlabeled images through the layers with their parameters held fixed, which
      costs nothing. (Where labeled images serve the unsupervised loss as well, as in CPS without mixing, the head runs
      once more on them.)
    - In any other model, losses are told apart by their names, see :class:`SupervisedOnly`.

    Args:
        layers: Names of layers or of blocks of layers, dotted paths with ``fnmatch`` patterns: ``['head.fc']``,
            ``['decode_head.conv_seg', 'auxiliary_head.*']``. In a semi-supervised model of mmssl they are looked for in
            each sub-model that is trained (``student1.decode_head.conv_seg``), too.
        supervised: ``fnmatch`` patterns of the names, as in the log, of the losses that the layers learn from. Default:
            ``None``, by construction in a model of mmssl, and in any other all losses but those whose name contains
            ``unsup``. If given, it rules in models of mmssl as well.

    Raises:
        ValueError: If an argument is no list of patterns; before training, if a pattern of ``layers`` matches nothing
            that is trained, a layer recomputes its activations, or the model's options do not let it be kept apart; in
            the first iteration, if a pattern of ``supervised`` matches no loss or a layer gets no gradient from any.
    """

    def __init__(self, layers: Sequence[str], supervised: Sequence[str] | None = None) -> None:
        self.key = f'custom_hooks: mmssl.{type(self).__name__}'
        for name, value in (('layers', layers), ('supervised', supervised)):
            is_list = isinstance(value, Sequence) and not isinstance(value, str)
            if value is None and name == 'supervised':
                continue
            if not is_list or not value or not all(isinstance(item, str) and item for item in value):
                raise ValueError(f'{self.key}.{name} must be a list of names or patterns, got {value!r}')
        self.layers = list(layers)
        self.supervised = None if supervised is None else list(supervised)
        self._by_name: SupervisedOnly | None = None

    def before_run(self, runner: Runner) -> None:
        """Find the layers, and let the model keep them apart."""
        # Not later: an optimizer wrapper that reads the losses hooks on after this, and so gets what this made of them.
        model = unwrap_model(runner.model)
        if sum(isinstance(hook, GradReLUHook) for hook in runner.hooks) > 1:
            raise ValueError(f'{self.key} is there twice; name all layers in one')
        if isinstance(model, LayerwiseMixin) and self.supervised is None:
            model.set_grad_relu(self.layers, f'{self.key}.layers')
            return
        if runner.cfg.get('compile'):
            raise ValueError(
                f'{self.key} puts copies of parameters into the model in each iteration, which `compile` does not '
                'allow; remove one of them'
            )
        parts = model.trained_models() if isinstance(model, LayerwiseMixin) else {'': model}
        layers = find_layers(parts, self.layers, f'{self.key}.layers')
        if self._by_name is not None:
            self._by_name.remove()
        self._by_name = SupervisedOnly(model, layers, self.supervised, self.key)

    def after_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        """Check, once, that losses went through."""
        if self._by_name is not None and not self._by_name.num_forwards:
            raise ValueError(
                f"{self.key}: model.type={type(unwrap_model(runner.model)).__name__} was trained without a call of "
                "model(..., mode='loss'), where the hook tells losses apart"
            )

    def after_train(self, runner: Runner) -> None:
        """Say so if no unlabeled image ever met the rule."""
        model = unwrap_model(runner.model)
        if isinstance(model, LayerwiseMixin) and self._by_name is None and not model.unsupervised_forwards:
            print_log(
                f'{self.key}: the model has run no forward of unlabeled images, so the hook has changed nothing',
                logger='current',
                level=logging.WARNING,
            )

    def after_run(self, runner: Runner) -> None:
        """Leave the model as it was."""
        if self._by_name is not None:
            self._by_name.remove()
            self._by_name = None
