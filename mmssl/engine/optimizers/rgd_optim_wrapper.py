"""RGDOptimWrapper: gradient surgery in single precision or bfloat16 weights."""

from mmengine.optim import OptimWrapper

from mmssl.registry import OPTIM_WRAPPERS

from .gradient_surgery import GradientSurgery


@OPTIM_WRAPPERS.register_module()
class RGDOptimWrapper(GradientSurgery, OptimWrapper):
    """mmengine's ``OptimWrapper`` with :class:`GradientSurgery`; for the arguments see there."""
