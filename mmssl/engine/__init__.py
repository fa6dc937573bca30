"""Hooks, loops and optimizer wrappers of mmssl."""

from . import hooks, loops, optimizers  # noqa: F401
