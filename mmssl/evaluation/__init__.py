"""Evaluation: metrics of mmssl."""

from .metrics import *  # noqa: F403
from .metrics import __all__  # noqa: F401
