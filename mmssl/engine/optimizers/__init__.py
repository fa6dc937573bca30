"""Optimizer wrappers of mmssl."""

from .amp_rgd_optim_wrapper import AmpRGDOptimWrapper
from .rgd_optim_wrapper import RGDOptimWrapper

__all__ = ['AmpRGDOptimWrapper', 'RGDOptimWrapper']
