"""Optimizer wrappers of mmssl, and constructors of them."""

from mmssl.registry import OPTIM_WRAPPER_CONSTRUCTORS
from mmssl.utils.optional import is_importable, register_missing

from .amp_rgd_optim_wrapper import AmpRGDOptimWrapper
from .rgd_optim_wrapper import RGDOptimWrapper

__all__ = ['AmpRGDOptimWrapper', 'RGDOptimWrapper']

if is_importable('mmpretrain'):
    from .layer_decay_optim_wrapper_constructor import LayerDecayOptimWrapperConstructor
    __all__ += ['LayerDecayOptimWrapperConstructor']
else:
    register_missing(OPTIM_WRAPPER_CONSTRUCTORS, ['LayerDecayOptimWrapperConstructor'], 'mmpretrain')
