"""Grad-ReLU for any OpenMMLab model: some layers take their gradient from the losses that a pattern names."""

import logging
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import torch
from mmengine.logging import print_log
from torch import Tensor, nn

from mmssl.functional.grad_relu import grad_relu
from mmssl.utils.layer_names import check_no_checkpointing

UNSUPERVISED = '*unsup*'


class SupervisedOnly:
    """Lets parameters of a model learn from its supervised losses alone, picked by the names of its losses.

    Two forward hooks on the model that mmengine's wrappers (DDP) hold inside, for ``mode='loss'`` in train mode. The
    first puts copies, which share memory with the parameters, in their place, so that no loss reaches the parameters.
    The second puts the parameters back, and replaces the supervised losses by equal ones that do reach them, through
    :func:`mmssl.functional.grad_relu.grad_relu`.

    So the gradient of the parameters is in the graph, and nothing has to know what happens behind it: it is scaled with
    the loss under AMP and accumulation, clipped, reduced by DDP (each parameter gets its gradient once, as its
    buckets expect, also with ``find_unused_parameters=False``), and taken by ``torch.autograd.grad`` in gradient
    surgery, for each group of losses its own. A hook on the parameters could not tell in one backward pass what part of
    the gradient is whose. The cost is a second backward pass from the supervised losses down to the layers: little for
    a classifier, much for a layer near the images.

    Args:
        model: The model, without its wrapper.
        layers: Path -> layer.
        supervised: ``fnmatch`` patterns of the losses that the layers learn from. ``None``: all but those whose name
            contains ``unsup``.
        key: Config key of the hook, for messages.

    Raises:
        ValueError: If a layer recomputes its activations in the backward pass; in the first iteration, if a pattern
            matches no loss, or no supervised loss reaches a layer.
    """

    def __init__(
        self, model: nn.Module, layers: Mapping[str, nn.Module], supervised: Sequence[str] | None, key: str
    ) -> None:
        check_no_checkpointing(model, layers, f'{key}.layers')
        self.layers, self.supervised, self.key = dict(layers), supervised, key
        named = {id(p): p for layer in layers.values() for p in layer.parameters() if p.requires_grad}
        self.parameters = list(named.values())
        # Everywhere in the model, since tied layers share parameters.
        self.sites = [
            (module, name, place) for module in model.modules() for name, parameter in module._parameters.items()
            for place, own in enumerate(self.parameters) if parameter is own
        ]  # fmt: skip
        self.copies: list[nn.Parameter] | None = None
        self.num_forwards = 0
        self.handles = [
            model.register_forward_pre_hook(self._before, with_kwargs=True),
            model.register_forward_hook(self._after, with_kwargs=True, always_call=True),
        ]

    def remove(self) -> None:
        """Take the hooks off the model."""
        for handle in self.handles:
            handle.remove()

    def _before(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        mode = kwargs.get('mode', next((value for value in args if isinstance(value, str)), None))
        if mode == 'loss' and model.training and torch.is_grad_enabled() and self.copies is None:
            self.copies = [nn.Parameter(parameter.detach()) for parameter in self.parameters]
            self._put(self.copies)

    def _after(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        if self.copies is None:
            return None
        copies, self.copies = self.copies, None
        self._put(self.parameters)
        if output is None:  # the forward has raised
            return None
        if not isinstance(output, Mapping):
            raise ValueError(
                f"{self.key} needs a model whose forward(mode='loss') returns a dict of losses, got "
                f'{type(output).__name__} from {type(model).__name__}'
            )
        names = self._supervised_names(output)
        flat = [
            (name, place, loss) for name in names for place, loss in enumerate(as_list(output[name]))
            if loss.requires_grad
        ]  # fmt: skip
        losses = [loss for *_, loss in flat]
        if not self.num_forwards:
            self._check_reached(losses, names, copies)
        self.num_forwards += 1
        result = output.copy()
        for (name, place, _), loss in zip(flat, grad_relu(losses, self.parameters, copies), strict=True):
            if isinstance(result[name], Tensor):
                result[name] = loss
            else:
                result[name] = [*result[name][:place], loss, *result[name][place + 1 :]]
        return result

    def _put(self, tensors: Sequence[Tensor]) -> None:
        for module, name, place in self.sites:
            module._parameters[name] = tensors[place]

    def _supervised_names(self, output: Mapping[str, Any]) -> list[str]:
        names = [name for name in output if 'loss' in name]
        if self.supervised is None:
            chosen = [name for name in names if not fnmatchcase(name, UNSUPERVISED)]
        else:
            chosen = [name for name in names if any(fnmatchcase(name, pattern) for pattern in self.supervised)]
        if self.num_forwards:
            return chosen
        for pattern in self.supervised or ():
            if not any(fnmatchcase(name, pattern) for name in names):
                raise ValueError(f'{self.key}.supervised: {pattern!r} matches no loss; the model has {sorted(names)}')
        if not chosen:
            raise ValueError(f'{self.key}.supervised is not set, and none of the losses {sorted(names)} is supervised')
        if len(chosen) == len(names):
            print_log(
                f'{self.key}: all losses of the first iteration, {sorted(names)}, count as supervised, so the hook '
                'changes nothing until there are others; name those that the layers shall learn from in `supervised`',
                logger='current',
                level=logging.WARNING,
            )
        return chosen

    def _check_reached(self, losses: Sequence[Tensor], names: Sequence[str], copies: Sequence[Tensor]) -> None:
        gradients = (
            torch.autograd.grad([loss.sum() for loss in losses], copies, retain_graph=True, allow_unused=True)
            if losses else [None] * len(copies)
        )  # fmt: skip
        reached = {id(p) for p, gradient in zip(self.parameters, gradients, strict=True) if gradient is not None}
        for path, layer in self.layers.items():
            if not any(id(parameter) in reached for parameter in layer.parameters()):
                raise ValueError(
                    f'{self.key}.layers: {path} gets no gradient from the supervised losses {sorted(names)}, so it '
                    'would never learn; name its loss in `supervised`, or leave the layer out'
                )


def as_list(value: Any) -> list[Tensor]:
    """A loss, or several under one name, as a list."""
    return [value] if isinstance(value, Tensor) else list(value)
