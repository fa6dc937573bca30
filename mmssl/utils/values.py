"""Checks of a config's values: a ValueError that names the key, what was found and what is allowed; and guesses."""

import difflib
from collections.abc import Callable, Iterable
from typing import Any

# What other codebases call the last word of an option.
SYNONYMS = {'start': 'begin', 'warmup': 'ramp', 'rampup': 'ramp'}


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


class CheckedArguments:
    """What a registered class checks its own arguments with: messages begin with its ``type`` and the argument."""

    @property
    def config_name(self) -> str:
        """The ``type`` that a config writes, the start of every message."""
        return f'mmssl.{type(self).__name__}'

    def check_number(
        self,
        key: str,
        value: Any,
        condition: Callable[[Any], bool],
        allowed: str,
        kind: type | tuple[type, ...] = (int, float),
    ) -> None:
        """:func:`check_number` of an argument."""
        check_number(value, f'{self.config_name}: `{key}`', condition, allowed, kind)

    def check_choice(self, key: str, value: Any, choices: Iterable[Any]) -> None:
        """:func:`check_choice` of an argument."""
        check_choice(value, choices, f'{self.config_name}: `{key}`')


def closest_option(name: str, allowed: Iterable[str]) -> str | None:
    """The option that a wrong name seems to mean; None if none is close.

    Words are compared without the prefix that many options share, which alone would make two of them similar.

    Examples:
        >>> closest_option('unsup_wieght', ['unsup_begin', 'unsup_ramp', 'unsup_weight'])
        'unsup_weight'
        >>> closest_option('unsup_start', ['unsup_begin', 'unsup_ramp', 'unsup_weight'])
        'unsup_begin'
        >>> closest_option('unsup_mode', ['unsup_begin', 'unsup_ramp', 'unsup_weight'])
    """
    options = list(allowed)
    prefix, _, word = name.rpartition('_')
    synonym = f'{prefix}_{SYNONYMS.get(word)}'
    if synonym in options:
        return synonym
    same = {option.rpartition('_')[2]: option for option in options if option.rpartition('_')[0] == prefix}
    if prefix:
        options = [option for option in options if option not in same.values()]
    close = difflib.get_close_matches(word, same, n=1) if prefix else []
    close = [same[close[0]]] if close else difflib.get_close_matches(name, options, n=1)
    return close[0] if close else None
