"""Hooks, loops (and later optimizer wrappers) of mmssl."""

from . import hooks, loops  # noqa: F401
