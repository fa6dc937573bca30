"""Pieces whose OpenMMLab library is not installed: an error at build time that says what to install."""

import importlib.util
from typing import Any

from mmengine.registry import Registry

DISTRIBUTIONS = {'mmseg': 'mmsegmentation', 'mmpretrain': 'mmpretrain'}


def is_importable(module: str) -> bool:
    """Whether ``module`` is installed, found out without importing it."""
    return importlib.util.find_spec(module) is not None


def register_missing(registry: Registry, names: list[str], module: str) -> None:
    """Register a stand-in for each of ``names`` that raises when a config builds it.

    Args:
        registry: The mmssl registry that the real classes belong to.
        names: Registered names, without the scope.
        module: The import name of the absent library: ``'mmseg'`` or ``'mmpretrain'``.
    """
    distribution = DISTRIBUTIONS[module]

    for name in names:

        def build(*args: Any, _name: str = name, **kwargs: Any) -> None:
            raise ImportError(f'mmssl.{_name} needs {module}, which is not installed: '
                              f'run `pip install onedl-{distribution}` (or `pip install {distribution}` '
                              'on the original OpenMMLab stack)')

        registry.register_module(name=name, module=build)
