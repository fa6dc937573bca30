"""Dotted names and the patterns that choose among them."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any


def check_patterns(patterns: Any, key: str) -> list[str]:
    """The patterns as a list; one string is a list of one.

    Raises:
        ValueError: If there is none, or they are no strings; the message names ``key``.
    """
    found = [patterns] if isinstance(patterns, str) else patterns
    if not isinstance(found, Sequence) or not found or not all(isinstance(item, str) and item for item in found):
        raise ValueError(f"{key} must be a list of names or patterns, such as ['backbone', 'head.*'], got {patterns!r}")
    return list(found)


def matches_path(path: str, pattern: str) -> bool:
    """Whether a pattern stands for a dotted path or for something that holds it.

    Examples:
        >>> matches_path('backbone.layer1.0.conv1.weight', 'backbone')
        True
        >>> matches_path('backbone.layer1.0.conv1.weight', 'backbone.layer?')
        True
        >>> matches_path('backbone2.conv.weight', 'backbone')
        False
    """
    parts = path.split('.')
    return any(fnmatchcase('.'.join(parts[:end]), pattern) for end in range(1, len(parts) + 1))


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns matches the whole of ``name``, case counting."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)
