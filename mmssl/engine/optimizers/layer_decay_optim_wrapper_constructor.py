"""Learning rates that shrink from layer to layer, for classifiers and for semi-supervised models around them."""

from collections.abc import Callable
from typing import Any

from mmpretrain.engine.optimizers import LearningRateDecayOptimWrapperConstructor
from torch import nn

from mmssl.registry import OPTIM_WRAPPER_CONSTRUCTORS


@OPTIM_WRAPPER_CONSTRUCTORS.register_module()
class LayerDecayOptimWrapperConstructor(LearningRateDecayOptimWrapperConstructor):
    """mmpretrain's ``LearningRateDecayOptimWrapperConstructor`` with two differences.

    - The model may hold the classifier as a part (``student``), as semi-supervised ones do.
    - What a backbone has after its layers, such as the last normalization of a vision transformer, belongs to the last
      layer, as in the code of BEiT and USB; mmpretrain counts it with the head. With 12 layers: group 0 is patches,
      positions and class token, 1 to 12 are the layers, 13 is the head; the learning rate of group ``i`` is multiplied
      by ``layer_decay_rate ** (13 - i)``.

    Its settings are those of ``paramwise_cfg`` there: ``layer_decay_rate``, ``norm_decay_mult``, ``flat_decay_mult``,
    ``custom_keys``, ...

    Raises:
        ValueError: No part of the model has a backbone with layers to tell apart (``get_layer_depth``).
    """

    def add_params(self,
                   params: list[dict],
                   module: nn.Module,
                   prefix: str = '',
                   get_layer_depth: Callable[[str], tuple[int, int]] | None = None,
                   **kwargs: Any) -> None:
        """Add the parameters of a module, one group each.

        Args:
            params: Receives the groups.
            module: The model, or a module inside it.
            prefix: Name of the module in the model, with a dot behind it.
            get_layer_depth: Group of a parameter, and number of groups. Default: None, that of the model.
            kwargs: As for mmpretrain's.
        """
        if get_layer_depth is None:
            get_layer_depth = layer_depth_of(module)
        super().add_params(params, module, prefix=prefix, get_layer_depth=get_layer_depth, **kwargs)


def layer_depth_of(model: nn.Module) -> Callable[[str], tuple[int, int]]:
    """A function from the name of a parameter to its group and the number of groups.

    Args:
        model: A classifier, or a model that holds one or several.

    Raises:
        ValueError: There is no backbone that knows the depth of its parameters.
    """
    classifiers = {'': model, **{f'{name}.': child for name, child in model.named_children()}}
    found = {prefix: child.backbone for prefix, child in classifiers.items()
             if hasattr(getattr(child, 'backbone', None), 'get_layer_depth')}
    if not found:
        raise ValueError('optim_wrapper.constructor=mmssl.LayerDecayOptimWrapperConstructor needs a backbone that '
                         'tells its layers apart (`get_layer_depth`, such as VisionTransformer); '
                         f'{type(model).__name__} has the parts {[name for name, _ in model.named_children()]}')

    def depth(name: str) -> tuple[int, int]:
        start = next((prefix for prefix in found if prefix and name.startswith(prefix)), '')
        backbone = found.get(start) or next(iter(found.values()))
        group, count = backbone.get_layer_depth(name[len(start):], 'backbone.')
        behind = name[len(start):].startswith('backbone.') and group == count - 1
        return (group - 1 if behind else group), count

    return depth
