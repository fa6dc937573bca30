"""Checks that the hooks which a model cannot do without are in the config."""

import inspect
from typing import Any

from mmengine.registry import HOOKS

from .nodes import get, is_sequence, type_name
from .report import Report
from .settings import model_class
from .sources import config_scope, find_class


def check_required_hooks(cfg: Any, report: Report) -> None:
    """`custom_hooks` must hold what the model names: such a list replaces an inherited one, and the hook is gone."""
    needed = getattr(model_class(cfg), 'hooks_needed', None)
    listed = cfg.get('custom_hooks') or []
    if needed is None or not is_sequence(listed):  # `check_names` reports what is no list
        return
    nodes = [node for node in listed if get(node, 'type') is not None]
    for name in needed(get(cfg, 'model')):
        if not any(_is_hook(cfg, node, name) for node in nodes):
            found = [type_name(node) for node in nodes]
            report.error(
                'custom_hooks',
                f'must hold {name}, without which model.type {type_name(cfg["model"])!r} does not train; found '
                f'{found}. Add dict(type={name!r}); a list of custom_hooks replaces the inherited one, so repeat its '
                'entries',
            )


def _is_hook(cfg: Any, node: Any, name: str) -> bool:
    """Whether a node builds the hook `name` or a subclass of it."""
    if type_name(node) == name.rsplit('.', 1)[-1]:
        return True
    with config_scope(cfg):
        kinds = [find_class(HOOKS, kind) for kind in (node['type'], name)]
    return all(inspect.isclass(kind) for kind in kinds) and issubclass(*kinds)
