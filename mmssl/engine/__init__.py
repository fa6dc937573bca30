"""Hooks (and later optimizer wrappers) of mmssl."""

from . import hooks  # noqa: F401
