"""Lists every public name of mmssl with its config keys; the stored list turns a rename into a decision.

``python tools/dev/api_surface.py`` prints the differences to ``tests/api_surface.json`` and exits with 1 if there are
any; ``--write`` brings the file up to date.
"""

import argparse
import importlib
import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mmengine.registry import Registry

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # the names of this checkout, installed or not
STORED = ROOT / 'tests' / 'api_surface.json'

# What other projects import: the package itself and its maths.
FUNCTIONAL = ('adr', 'adr_fused', 'ael', 'cutmix', 'fpl', 'fpl_diagnostics', 'fpl_fused', 'ohem',
              'online_label_smoothing')
MODULES = ('mmssl', *(f'mmssl.functional.{name}' for name in FUNCTIONAL))


def signature(function: Callable[..., Any]) -> dict[str, str]:
    """Parameter names with their defaults as text; ``<required>`` if there is none."""
    parameters = {}
    for parameter in inspect.signature(function).parameters.values():
        name = {'VAR_POSITIONAL': '*', 'VAR_KEYWORD': '**'}.get(parameter.kind.name, '') + parameter.name
        default = parameter.default
        if default is inspect.Parameter.empty:
            parameters[name] = '<required>' if not name.startswith('*') else ''
        elif isinstance(default, (str, int, float, bool, tuple, list, dict, type(None))):
            parameters[name] = repr(default)
        else:
            parameters[name] = f'<{type(default).__name__}>'
    return parameters


def options(item: Any) -> dict[str, str]:
    """Keys of ``semi_train_cfg`` with their defaults, which are as public as a constructor's arguments."""
    return {f'semi_train_cfg.{key}': repr(value) for key, value in getattr(item, 'TRAIN_DEFAULTS', {}).items()}


def surface() -> dict[str, dict[str, dict[str, str]]]:
    """Registered names by registry, and the functions of ``MODULES``, each with its keys."""
    names: dict[str, dict[str, dict[str, str]]] = {}
    registry = importlib.import_module('mmssl.registry')
    for variable, value in vars(registry).items():
        if isinstance(value, Registry) and value.scope == 'mmssl':
            value.import_from_location()
            if value.module_dict:
                names[variable] = {
                    name: {**signature(item), **options(item)} for name, item in sorted(value.module_dict.items())
                }
    for module_name in MODULES:
        names[module_name] = {
            name: signature(function) for name, function in sorted(public_functions(module_name).items())
        }
    return names


def public_functions(module_name: str) -> dict[str, Callable[..., Any]]:
    """Functions in a module's ``__all__``, or, without one, those that it defines under a name without underscore."""
    module = importlib.import_module(module_name)
    if hasattr(module, '__all__'):
        return {name: getattr(module, name) for name in module.__all__ if callable(getattr(module, name))}
    return {
        name: value for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module_name and not name.startswith('_')
    }  # fmt: skip


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """One line for each name or key that was added, removed or changed."""
    lines = []
    for group in sorted({*old, *new}):
        before, after = old.get(group, {}), new.get(group, {})
        lines += [f'{group}: {name} was removed' for name in before if name not in after]
        lines += [f'{group}: {name} is new' for name in after if name not in before]
        for name in before:
            for key in [*before[name], *after.get(name, {})] if name in after else []:
                was, now = before[name].get(key, 'absent'), after[name].get(key, 'absent')
                line = f'{group}: {name}({key}) was {was}, is {now}'
                if was != now and line not in lines:
                    lines.append(line)
    return lines


def main() -> int:
    """Compare or write; see the module's first lines."""
    parser = argparse.ArgumentParser(description='Compare the public names of mmssl with tests/api_surface.json')
    parser.add_argument('--write', action='store_true', help='bring tests/api_surface.json up to date')
    args = parser.parse_args()
    new = surface()
    if args.write:
        STORED.write_text(json.dumps(new, indent=2) + '\n', encoding='utf-8')
        print(f'{STORED.relative_to(ROOT)}: {sum(map(len, new.values()))} names')
        return 0
    lines = differences(json.loads(STORED.read_text(encoding='utf-8')), new)
    print('\n'.join(lines) if lines else 'no difference')
    return int(bool(lines))


if __name__ == '__main__':
    sys.exit(main())
