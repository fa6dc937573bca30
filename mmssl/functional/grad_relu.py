"""Grad-ReLU of LayerMatch: parameters that no loss but the supervised ones changes."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor


@contextmanager
def held_fixed(parameters: Iterable[Tensor]) -> Iterator[None]:
    r"""Inside the block, graphs treat ``parameters`` as constants; gradients pass through to what is before them.

    This is the rule of Grad-ReLU (LayerMatch, Sec. 4.2.1) for losses of data that only passes inside the block,

    .. math:: \nabla_W \mathcal{L} = 0 \quad\text{if W is one of the layers' parameters and } \mathcal{L} \ne
              \mathcal{L}_s,

    with no operation spent on it. A graph built before the block, or after it, is not touched, and what was no leaf
    that requires a gradient stays as it is.

    Args:
        parameters: Leaf tensors, any shapes.
    """
    changed = [parameter for parameter in parameters if parameter.requires_grad]
    for parameter in changed:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in changed:
            parameter.requires_grad_(True)


def grad_relu(losses: Sequence[Tensor], parameters: Sequence[Tensor], copies: Sequence[Tensor]) -> list[Tensor]:
    """Give ``parameters`` the gradient of ``losses``, and of no other loss of the same graph.

    The graph was built with ``copies`` in the place of ``parameters``, so that none of its losses reaches the latter.
    The losses that are returned have the same values and gradients, and reach ``parameters`` besides: in a backward
    pass through any of them, whatever their factors, the gradient with respect to ``copies`` is computed first, from
    these losses alone, and handed over. It is the very computation that a backward pass without the other losses
    makes, so equal to the last bit. Works under ``backward`` and ``torch.autograd.grad``, once or several times.

    Args:
        losses: Supervised losses, any shapes.
        parameters: Leaf tensors that require a gradient.
        copies: Leaf tensors of the same shapes that stood in for them.

    Returns:
        One tensor for each of ``losses``.
    """
    if not losses:
        return []
    return list(_Deliver.apply(tuple(losses), tuple(copies), *losses, *parameters))


class _Deliver(torch.autograd.Function):
    """Identity on losses; its backward adds the losses' own gradient with respect to some leaves."""

    @staticmethod
    def forward(ctx: Any, losses: tuple[Tensor, ...], copies: tuple[Tensor, ...], *tensors: Tensor) -> Any:
        # The losses are kept as they came, with their graph; saved tensors would be no part of it.
        ctx.losses, ctx.copies = losses, copies
        ctx.set_materialize_grads(False)
        return tuple(tensor.clone() for tensor in tensors[: len(losses)])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        reached = [pair for pair in zip(ctx.losses, grads, strict=True) if pair[1] is not None]
        delivered: Sequence[Tensor | None] = [None] * len(ctx.copies)
        if reached:
            roots, outer = zip(*reached, strict=True)
            # The outer backward has yet to go through this graph.
            delivered = torch.autograd.grad(roots, ctx.copies, outer, retain_graph=True, allow_unused=True)
        return (None, None, *grads, *delivered)
