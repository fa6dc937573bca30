"""Checks that the hooks which a model cannot do without are in the config."""

import inspect
from typing import Any

from mmengine.registry import HOOKS

from .nodes import get, is_sequence, type_name, walk
from .report import Report
from .settings import loop_of, model_class
from .sources import config_scope, find_class


def check_required_hooks(cfg: Any, report: Report) -> None:
    """`custom_hooks` must hold what the model names: such a list replaces an inherited one, and the hook is gone."""
    listed = cfg.get('custom_hooks') or []
    if not is_sequence(listed):  # `check_names` reports what is no list
        return
    hooks = {f'custom_hooks.{index}': node for index, node in enumerate(listed) if get(node, 'type') is not None}
    needed = getattr(model_class(cfg), 'hooks_needed', None)
    for name in needed(get(cfg, 'model')) if needed else []:
        _require(cfg, hooks, name, f'model.type {type_name(cfg["model"])!r}', report)
    for key, loss in walk(get(cfg, 'model'), 'model'):
        if type_name(loss) == 'OnlineLabelSmoothLoss' and loss.get('updates', 'hook') == 'hook':
            _require(cfg, hooks, 'mmssl.OnlineLabelSmoothHook', f'{key}.type {loss["type"]!r}', report)
            break
    kind, _ = loop_of(cfg)
    for key, node in hooks.items():
        if type_name(node) == 'OnlineLabelSmoothHook' and kind == 'iter' and node.get('interval') is None:
            report.error(
                f'{key}.interval',
                'is missing, and an iteration-based train_cfg has no epochs; allowed: the iterations after which the '
                'soft targets are made anew, >= 1',
            )


def _require(cfg: Any, hooks: dict[str, Any], name: str, owner: str, report: Report) -> None:
    """Report an error unless one of the hooks is `name`."""
    if not any(_is_hook(cfg, node, name) for node in hooks.values()):
        report.error(
            'custom_hooks',
            f'must hold {name}, without which {owner} does not train; found '
            f'{[type_name(node) for node in hooks.values()]}. Add dict(type={name!r}); a list of custom_hooks replaces '
            'the inherited one, so repeat its entries',
        )


def _is_hook(cfg: Any, node: Any, name: str) -> bool:
    """Whether a node builds the hook `name` or a subclass of it."""
    if type_name(node) == name.rsplit('.', 1)[-1]:
        return True
    with config_scope(cfg):
        kinds = [find_class(HOOKS, kind) for kind in (node['type'], name)]
    return all(inspect.isclass(kind) for kind in kinds) and issubclass(*kinds)
