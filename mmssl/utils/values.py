"""Checks of a config's values: a ValueError that names the key, what was found and what is allowed."""

from collections.abc import Callable, Iterable
from typing import Any


def check_choice(value: Any, choices: Iterable[Any], key: str) -> None:
    """Raise ValueError, naming ``key``, unless ``value`` is one of ``choices``."""
    choices = list(choices)
    if value not in choices:
        raise ValueError(f'{key} must be one of {choices}, got {value!r}')


def check_number(
    value: Any,
    key: str,
    condition: Callable[[Any], bool],
    allowed: str,
    kind: type | tuple[type, ...] = (int, float),
) -> None:
    """Raise ValueError, naming ``key``, unless ``value`` is a number of ``kind`` for which ``condition`` holds.

    The condition is a function, since to compare a wrong type would raise an error without the key. A bool is none.
    """
    if isinstance(value, bool) or not isinstance(value, kind) or not condition(value):
        raise ValueError(f'{key} must be {allowed}, got {value!r}')
