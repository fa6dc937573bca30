"""The averaged classifier of Avg-Clustering: its weights, their reset and their step, and what it says to features."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from mmengine.dist import all_reduce_params, get_world_size
from torch import Tensor, nn
from torch.func import functional_call

from mmssl.functional.avg_clustering import average_step_, is_reset, with_gradient


class AverageHead(nn.Module):
    r"""Averaged copies of final layers, which draw the features of unlabeled images to centers that hardly move.

    One step t, with the main layer :math:`\beta_t` and the unsupervised loss :math:`L_{ac}` of LayerMatch, Eq. 8:

    1. if t mod N = 0, :math:`\bar\beta_t \leftarrow \beta_t`, before this iteration's update of :math:`\beta`;
    2. :math:`L_{ac}` on the logits of :math:`\bar\beta_t`; its gradient reaches the features and :math:`\bar\beta_t`,
       never :math:`\beta_t`;
    3. after the optimizer step, :math:`\bar\beta_{t+1} \leftarrow \bar\beta_t - (1 - m)\,\alpha\,\nabla_{\bar\beta_t}
       L_{ac}`, the gradient being that of the unweighted loss, and its mean over processes and over the batches of one
       optimizer step.

    With ``lookahead``, iteration t moves :math:`\bar\beta_{t-1}` first, by the gradient of its own batch, and then
    computes the loss with the moved one, which takes a second pass through the layer and the loss.

    t counts optimizer steps that had an averaged loss, so that the first of them starts from the main layer of that
    moment, however long the model has learned from labels alone.

    Weights and counter are buffers: float32 (or float64, as the layer), in the checkpoint, in no optimizer. The logits
    are computed in that precision under AMP too: the published step, 5e-7 times the gradient, is lost in half
    precision, and unscaled gradients of pixels are as well.

    The gradient with respect to :math:`\bar\beta` and the features' share of it are taken in the forward pass: the
    loss is differentiated once, with respect to the logits, whatever then scales the total loss (AMP, accumulation,
    loss weights) and however many backward passes gradient surgery makes. Those only multiply.

    Args:
        layers: Name of a sub-model -> its final layer, linear or convolutional.
        momentum: :math:`1 - m`, in [0, 1].
        reset_interval: N >= 1.
        lr: :math:`\alpha` >= 0.
        loss_weight: Weight of the loss in the total, >= 0.
        lookahead: See above.
    """

    def __init__(
        self,
        layers: Mapping[str, nn.Module],
        momentum: float = 0.001,
        reset_interval: int = 2048,
        lr: float = 5e-4,
        loss_weight: float = 1.0,
        lookahead: bool = False,
    ) -> None:
        super().__init__()
        self.momentum, self.reset_interval, self.lr = momentum, reset_interval, lr
        self.loss_weight, self.lookahead = loss_weight, lookahead
        for name, layer in layers.items():
            held = nn.Module()
            for parameter_name, parameter in layer.named_parameters():
                value = parameter.detach().to(torch.promote_types(parameter.dtype, torch.float32), copy=True)
                held.register_buffer(parameter_name, value)
            self.add_module(name, held)
        self.register_buffer('step', torch.zeros((), dtype=torch.long))
        # The host's copy keeps the GPU from being read.
        self._host_step: int | None = None
        self._gradients: list[Tensor] = []
        self._batches = 0

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self._host_step = None

    @property
    def num_steps(self) -> int:
        """t, optimizer steps with an averaged loss so far."""
        if self._host_step is None:
            self._host_step = int(self.step)
        return self._host_step

    def restart(self) -> None:
        """Count from 0, so that the next loss starts from the main layers."""
        self._set_step(0)
        self._gradients, self._batches = [], 0

    def _set_step(self, step: int) -> None:
        self._host_step = step
        self.step.fill_(step)

    def weights(self, name: str) -> dict[str, Tensor]:
        """Weight and bias of the averaged layer of one sub-model."""
        return dict(getattr(self, name).named_buffers())

    @torch.no_grad()
    def reset(self, layers: Mapping[str, nn.Module]) -> None:
        """Copy the main layers."""
        for name, layer in layers.items():
            for parameter_name, parameter in layer.named_parameters():
                getattr(getattr(self, name), parameter_name).copy_(parameter)

    def loss(
        self,
        layers: Mapping[str, nn.Module],
        seen: Sequence[tuple[str, Tensor]],
        loss: Callable[..., Tensor],
    ) -> Tensor:
        """The unweighted loss on the averaged logits, attached to the features; notes the gradient for the step.

        Args:
            layers: The main layers, by sub-model.
            seen: For each forward that counts, the sub-model and the features that its layer saw.
            loss: Takes the averaged logits, one tensor for each of ``seen``, shaped as the layer's output.
        """
        if is_reset(self.num_steps, self.reset_interval):
            if not self._batches:  # further batches of one optimizer step find the same main layers
                self.reset(layers)
        elif self.lookahead:
            detached = [(name, features.detach()) for name, features in seen]
            *_, weights, gradients = self._differentiate(layers, detached, loss)
            average_step_(weights, averaged_over_ranks(gradients), self.momentum, self.lr)
        value, logits, outer, _, gradients = self._differentiate(layers, seen, loss)
        self._batches += 1
        if not self.lookahead:
            if not self._gradients:
                self._gradients = [torch.zeros_like(gradient) for gradient in gradients]
            for total, gradient in zip(self._gradients, gradients, strict=True):
                total.add_(gradient)
        return with_gradient(value, logits, outer)

    def _differentiate(
        self, layers: Mapping[str, nn.Module], seen: Sequence[tuple[str, Tensor]], loss: Callable[..., Tensor]
    ) -> tuple[Tensor, list[Tensor], list[Tensor], list[Tensor], list[Tensor]]:
        """Loss, averaged logits, its gradient with respect to them; averaged weights, its gradient for those."""
        weights = {name: self.weights(name) for name in layers}
        leaves = {name: {key: value.detach().requires_grad_() for key, value in own.items()}
                  for name, own in weights.items()}  # fmt: skip
        logits = []
        with torch.autocast(device_type=seen[0][1].device.type, enabled=False):
            for name, features in seen:
                dtype = next(iter(weights[name].values())).dtype
                logits.append(functional_call(layers[name], leaves[name], (features.to(dtype),)))
            ends = [output.detach().requires_grad_() for output in logits]
            value = loss(*ends)
            outer = with_zeros(torch.autograd.grad(value, ends, allow_unused=True), ends)
            flat = [leaf for own in leaves.values() for leaf in own.values()]
            gradients = with_zeros(
                torch.autograd.grad(logits, flat, outer, retain_graph=True, allow_unused=True), flat
            )
        return value, logits, outer, [value for own in weights.values() for value in own.values()], gradients

    def update(self) -> None:
        """Step 3, after an optimizer step; nothing if no batch of it had an averaged loss."""
        if not self._batches:
            return
        if not self.lookahead:
            gradients = averaged_over_ranks([gradient / self._batches for gradient in self._gradients])
            weights = [value for name, _ in self.named_children() for value in self.weights(name).values()]
            average_step_(weights, gradients, self.momentum, self.lr)
        self._gradients, self._batches = [], 0
        self._set_step(self.num_steps + 1)

    def extra_repr(self) -> str:
        """Show the settings."""
        return (f'momentum={self.momentum}, reset_interval={self.reset_interval}, lr={self.lr}, '
                f'loss_weight={self.loss_weight}, lookahead={self.lookahead}')  # fmt: skip


def averaged_over_ranks(gradients: list[Tensor]) -> list[Tensor]:
    """Means over all processes, in place; as they are in a single one."""
    if get_world_size() > 1:
        all_reduce_params(gradients, coalesce=True, op='mean')
    return gradients


def with_zeros(gradients: Sequence[Tensor | None], like: Sequence[Tensor]) -> list[Tensor]:
    """Gradients with zeros for those that do not exist."""
    return [torch.zeros_like(tensor) if gradient is None else gradient
            for gradient, tensor in zip(gradients, like, strict=True)]  # fmt: skip
