"""What makes a semi-supervised model treat layers apart: Grad-ReLU and Avg-Clustering of LayerMatch."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from mmssl.functional.grad_relu import held_fixed
from mmssl.models.average_head import AverageHead
from mmssl.utils.layer_names import check_no_checkpointing, find_layers, is_trained

KEY = 'custom_hooks: mmssl.EMAHeadHook.layer'


@dataclass(frozen=True)
class SeenLayer:
    """One pass of unlabeled images through a layer that is averaged.

    Attributes:
        name: The sub-model whose layer it is.
        features: What the layer saw, with its graph.
        output: What the layer returned, with its graph.
    """

    name: str
    features: Tensor
    output: Tensor


class LayerwiseMixin:
    """Lets ``mmssl.GradReLUHook`` and ``mmssl.EMAHeadHook`` act on a model; without them it does nothing.

    A model runs each forward that only unlabeled images go through inside :meth:`unsupervised_forward`, and, if there
    is an ``average_head``, adds the averaged loss::

        with self.unsupervised_forward() as seen:
            logits = self.student.head(features)
        losses['unsup_loss'] = weight * self.unsup_loss(logits, target)
        if self.average_head is not None:
            losses['unsup_avg_loss'] = self.average_loss(seen, lambda logits: self.unsup_loss(logits, target), ramp)

    Attributes:
        average_head: The averaged layers, or ``None``.
        grad_relu_layers: Paths of the layers that learn from supervised losses alone.
        unsupervised_forwards: Forwards of unlabeled images so far, in this process.
    """

    MODELS_HELD: ClassVar[tuple[str, ...]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # An attribute, no empty sub-module: torch would drop what a checkpoint holds for such a one without a word.
        self.average_head: AverageHead | None = None
        self.grad_relu_layers: tuple[str, ...] = ()
        # Sub-model -> path of its averaged layer.
        self.average_layers: dict[str, str] = {}
        self._checked_outputs: set[str] = set()
        self.unsupervised_forwards = 0
        self._awaits_average_loss = False

    def trained_models(self) -> dict[str, nn.Module]:
        """The sub-models that learn by gradient, by name; a teacher is none."""
        models = {name: getattr(self, name) for name in self.MODELS_HELD}
        return {name: model for name, model in models.items() if is_trained(model)}

    @property
    def is_layerwise(self) -> bool:
        """Whether unlabeled images need a forward of their own through some layer."""
        return bool(self.grad_relu_layers) or self.average_head is not None

    def holds_layers_outside(self, *prefixes: str) -> bool:
        """Whether a layer of Grad-ReLU lies outside all of these parts of a sub-model, such as ``'decode_head'``."""
        inner = [path.split('.', 1)[1] for path in self.grad_relu_layers]
        return any(not f'{path}.'.startswith(tuple(f'{prefix}.' for prefix in prefixes)) for path in inner)

    # --- what the hooks call ----------------------------------------------------------------------------------------

    def set_grad_relu(self, patterns: Sequence[str], key: str = 'layers') -> None:
        """Let the named layers learn from supervised losses alone.

        Args:
            patterns: Names or fnmatch patterns, of a path in the model or in a trained sub-model.
            key: The config key, for messages.

        Raises:
            ValueError: A pattern matches nothing that is trained, or a layer cannot be kept apart.
        """
        layers = find_layers(self.trained_models(), patterns, key)
        check_no_checkpointing(self, layers, key)
        self.grad_relu_layers = tuple(layers)
        try:
            self.check_grad_relu(key)
        except ValueError:
            self.grad_relu_layers = ()
            raise

    def check_grad_relu(self, key: str) -> None:
        """Refuse ``grad_relu_layers`` that the model's way of running forwards cannot keep apart; all are fine here.

        Args:
            key: The config key, for the message.

        Raises:
            ValueError: Names the layer and the option that is in the way.
        """

    def set_average_head(self, pattern: str, key: str = 'layer', **options: Any) -> None:
        """Average a final layer of each trained sub-model.

        Args:
            pattern: Name or fnmatch pattern, of a path in the model or in a trained sub-model.
            key: The config key, for messages.
            **options: Of :class:`AverageHead`.

        Raises:
            ValueError: Not exactly one layer of each trained sub-model matches, or it has layers or buffers inside.
        """
        if not isinstance(pattern, str):
            raise ValueError(f"{key} must be the name of a layer, such as 'head.fc', got {pattern!r}")
        models = self.trained_models()
        layers = find_layers(models, [pattern], key)
        paths: dict[str, list[str]] = {name: [] for name in models}
        for path in layers:
            paths[path.split('.', 1)[0]].append(path)
        for name, found in paths.items():
            if len(found) != 1:
                raise ValueError(
                    f'{key} must name one layer of each sub-model that is trained; {pattern!r} names '
                    f'{found or "none"} of {name}'
                )
        layers = {name: layers[found[0]] for name, found in paths.items()}
        for name, layer in layers.items():
            inside = [*layer.named_children(), *layer.named_buffers()]
            if inside:
                raise ValueError(
                    f'{key} must name a single linear or convolutional layer, {paths[name][0]} is a '
                    f'{type(layer).__name__} that holds {", ".join(inner for inner, _ in inside)}'
                )
        self.average_layers = {name: found[0] for name, found in paths.items()}
        self._checked_outputs.clear()
        self.average_head = AverageHead(layers, **options)

    def update_average_head(self) -> None:
        """Move the averaged layers, after an optimizer step.

        Raises:
            RuntimeError: The model's ``loss`` has no averaged loss.
        """
        if self._awaits_average_loss:
            raise RuntimeError(
                f'{type(self).__name__}.loss ran unlabeled images through {", ".join(self.average_layers.values())}, '
                'but added no averaged loss; it must call `average_loss` with what `unsupervised_forward` yields'
            )
        if self.average_head is not None:
            self.average_head.update()

    # --- what the model's loss calls --------------------------------------------------------------------------------

    @contextmanager
    def unsupervised_forward(self) -> Iterator[list[SeenLayer]]:
        """Run forwards of unlabeled images in the block.

        The layers of Grad-ReLU take no gradient from them, and each pass through an averaged layer is noted in the list
        that is yielded, in order; passes without gradient are not.
        """
        seen: list[SeenLayer] = []
        handles = [
            self.get_submodule(path).register_forward_hook(noting(seen, name))
            for name, path in self.average_layers.items()
        ]
        fixed = [p for path in self.grad_relu_layers for p in self.get_submodule(path).parameters()]
        try:
            with held_fixed(fixed):
                yield seen
        finally:
            for handle in handles:
                handle.remove()
            self.unsupervised_forwards += 1
            self._awaits_average_loss = self._awaits_average_loss or bool(seen)

    def average_loss(
        self, seen: Sequence[SeenLayer], loss: Callable[..., Tensor], ramp: float = 1.0
    ) -> Tensor:
        """The weighted loss on the logits of the averaged layers (LayerMatch, Eq. 8); see :class:`AverageHead`.

        Args:
            seen: What :meth:`unsupervised_forward` has yielded; of several blocks, the joined lists.
            loss: The unweighted unsupervised loss as a function of the averaged logits: of one tensor for each entry of
                ``seen``, shaped as the layer's output. Called once, or twice with ``lookahead``.
            ramp: Factor of ``loss_weight`` in this iteration, such as the share of the unsupervised weight that has
                been reached.

        Raises:
            ValueError: The averaged layer took no part in the forwards of the unlabeled images.
        """
        if not seen:
            raise ValueError(
                f'{KEY}: {", ".join(self.average_layers.values())} takes no part in the forward of unlabeled images; '
                'name the final layer of the model'
            )
        self._awaits_average_loss = False
        layers = {name: self.get_submodule(path) for name, path in self.average_layers.items()}
        value = self.average_head.loss(layers, [(entry.name, entry.features) for entry in seen], loss)
        return ramp * self.average_head.loss_weight * value

    def check_final(
        self, seen: Sequence[SeenLayer], logits: Tensor, finish: Callable[[Tensor], Tensor] | None = None
    ) -> None:
        """Check, once for each sub-model, that its averaged layer makes the logits.

        Args:
            seen: What one forward has noted.
            logits: What it returned.
            finish: What the model does to the layer's output, such as to resize it. Default: nothing.

        Raises:
            ValueError: The layer ran not exactly once, or it is not the last one.
        """
        if self.average_head is None:
            return
        if len(seen) != 1:
            raise ValueError(
                f'{KEY}: {", ".join(self.average_layers.values())} must run once in a forward of unlabeled images, it '
                f'ran {len(seen)} times; name the final layer of the model'
            )
        (entry,) = seen
        if entry.name in self._checked_outputs:
            return
        output = entry.output if finish is None else finish(entry.output)
        if output.shape != logits.shape or not torch.equal(output.detach(), logits.detach()):
            raise ValueError(
                f'{KEY}: {self.average_layers[entry.name]} is not the layer that makes the logits: its output is '
                f'{tuple(output.shape)}, the logits are {tuple(logits.shape)}'
                f'{" with other values" if output.shape == logits.shape else ""}; name the final layer'
            )
        self._checked_outputs.add(entry.name)


def noting(seen: list[SeenLayer], name: str) -> Callable[..., None]:
    """A forward hook that notes what a layer sees and returns."""

    def note(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        if torch.is_grad_enabled():
            seen.append(SeenLayer(name, inputs[0], output))

    return note
