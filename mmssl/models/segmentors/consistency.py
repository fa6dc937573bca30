"""What the segmentors that learn from pseudo labels share: checks of their pieces, and means over the right pixels."""

import inspect

import torch
from mmengine.dist import all_reduce
from torch import Tensor, nn


def check_mixing(mix: nn.Module | None, extra: tuple[type, ...] = ()) -> None:
    """Refuse a ``mix`` that cannot mix; it would be noticed only when the unsupervised loss begins.

    Args:
        mix: What the config has built.
        extra: Classes that the model handles in its own way.

    Raises:
        ValueError: It neither draws masks (``sample``) as :class:`CutMix` nor is one of ``extra``.
    """
    if mix is None or isinstance(mix, extra) or callable(getattr(mix, 'sample', None)):
        return
    names = ' or '.join(f'mmssl.{kind}' for kind in ('CutMix', *(kind.__name__ for kind in extra)))
    raise ValueError(f'model.semi_train_cfg.mix must be None or mix pairs, as {names}, got {type(mix).__name__}')


def check_perturbation(perturbation: nn.Module | None) -> None:
    """Refuse a ``feature_perturbation`` that does not take features alone.

    Raises:
        ValueError: Its ``forward`` needs another number of arguments than one.
    """
    if perturbation is None:
        return
    parameters = inspect.signature(perturbation.forward).parameters.values()
    optional = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    needed = [entry.name for entry in parameters if entry.default is entry.empty and entry.kind not in optional]
    if len(needed) != 1:
        raise ValueError(
            'model.semi_train_cfg.feature_perturbation must have `forward(features)`, as mmssl.FeatureDropout, got '
            f'{type(perturbation).__name__} with the arguments {needed}'
        )


def valid_arguments(valid: Tensor) -> dict[str, Tensor]:
    """Arguments that make a loss the mean over the valid pixels of all ranks, once gradients are averaged over ranks.

    Args:
        valid: Bool, any shape.
    """
    count = valid.sum().float()
    all_reduce(count, 'mean')
    return dict(valid=valid, avg_factor=count.clamp(min=1))


def join_pixels(parts: list[Tensor]) -> Tensor:
    """Join logits (N, C, H, W) or masks (N, H, W) of several batches so that one mean runs over all their pixels.

    Parts of one size are joined along N. Parts of different sizes become a list of pixels, (P, C) or (P,).
    """
    if len(parts) == 1:
        return parts[0]
    if len({part.shape[-2:] for part in parts}) == 1:
        return torch.cat(parts)
    return torch.cat([part.movedim(1, -1).flatten(0, -2) if part.dim() == 4 else part.flatten() for part in parts])
