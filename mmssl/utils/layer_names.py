"""Layers by their names: dotted module paths with fnmatch patterns, and errors that list what exists."""

import difflib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from torch import nn

# How the layers of OpenMMLab say that their forward runs again in the backward pass.
CHECKPOINTING = ('with_cp', 'use_checkpoint', 'grad_checkpointing', 'gradient_checkpointing')
SHOWN = 20


def find_layers(parts: Mapping[str, nn.Module], patterns: Any, key: str) -> dict[str, nn.Module]:
    """Layers that are named, with their full paths.

    Args:
        parts: Path of each module to search in -> module. ``''`` is the path of a whole model. A pattern may name the
            full path or the one inside the part: ``head.fc`` is found as ``student.head.fc``.
        patterns: A list of names or fnmatch patterns. What a pattern matches may be a layer or a block of layers.
        key: The config key, for the message.

    Returns:
        Path -> module, in the order of the model, each with parameters that are trained.

    Raises:
        ValueError: ``patterns`` is no list of names, or one of them matches nothing, or nothing that has parameters
            which are trained.
    """
    is_list = isinstance(patterns, Sequence) and not isinstance(patterns, str)
    if not is_list or not patterns or not all(isinstance(pattern, str) and pattern for pattern in patterns):
        raise ValueError(f"{key} must be a list of layer names, such as ['decode_head.conv_seg'], got {patterns!r}")
    modules = {
        f'{path}.{inner}'.strip('.'): (inner, module)
        for path, part in parts.items() for inner, module in part.named_modules() if inner
    }  # fmt: skip
    found: dict[str, nn.Module] = {}
    for pattern in patterns:
        matched = {
            path: module for path, (inner, module) in modules.items()
            if fnmatchcase(path, pattern) or fnmatchcase(inner, pattern)
        }  # fmt: skip
        if not matched:
            raise ValueError(f'{key}: {pattern!r} matches no layer of the model{_hint(pattern, modules)}')
        trained = {path: module for path, module in matched.items() if is_trained(module)}
        if not trained:
            kinds = ', '.join(f'{path} ({type(module).__name__})' for path, module in list(matched.items())[:SHOWN])
            raise ValueError(f'{key}: {pattern!r} matches only what has no parameter that is trained: {kinds}')
        found.update(trained)
    return {path: found[path] for path in modules if path in found}


def is_trained(module: nn.Module) -> bool:
    """Whether ``module`` has a parameter that requires a gradient."""
    return any(parameter.requires_grad for parameter in module.parameters())


def check_no_checkpointing(model: nn.Module, layers: Mapping[str, nn.Module], key: str) -> None:
    """Refuse layers whose forward runs again in the backward pass, where nothing tells the losses apart.

    Args:
        model: Holds the layers.
        layers: Path -> layer.
        key: The config key, for the message.

    Raises:
        ValueError: A layer, what is around it or what is in it uses activation checkpointing.
    """
    for path, layer in layers.items():
        words = path.split('.')
        around = {'.'.join(words[:count]): None for count in range(1, len(words))}
        for name in around:
            around[name] = model.get_submodule(name)
        inside = {f'{path}.{name}'.rstrip('.'): module for name, module in layer.named_modules()}
        for name, module in {**around, **inside}.items():
            for flag in CHECKPOINTING:
                if getattr(module, flag, False) is True:
                    raise ValueError(
                        f'{key}: {path} lies in {name}, which recomputes its activations ({flag}=True), so losses '
                        f'cannot be told apart there; set {flag}=False or name layers outside it'
                    )


def _hint(pattern: str, modules: Mapping[str, tuple[str, nn.Module]]) -> str:
    owners = [inner for inner, module in modules.values() if any(True for _ in module.parameters(recurse=False))]
    owners = list(dict.fromkeys(owners))
    # Those that resemble the name first, then the last ones, where the classifiers are.
    close = difflib.get_close_matches(pattern, owners, n=3, cutoff=0.5)
    shown = list(dict.fromkeys([*close, *reversed(owners)]))[:SHOWN]
    more = f' and {len(owners) - len(shown)} more' if len(owners) > len(shown) else ''
    guess = f'; did you mean {close[0]!r}?' if close else '.'
    return f'{guess} Layers with parameters: {", ".join(shown)}{more}'
