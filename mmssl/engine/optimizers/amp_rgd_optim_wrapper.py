"""AmpRGDOptimWrapper: gradient surgery under automatic mixed precision."""

from mmengine.optim import AmpOptimWrapper
from torch import Tensor

from mmssl.registry import OPTIM_WRAPPERS

from .gradient_surgery import GradientSurgery


@OPTIM_WRAPPERS.register_module()
class AmpRGDOptimWrapper(GradientSurgery, AmpOptimWrapper):
    """mmengine's ``AmpOptimWrapper`` with :class:`GradientSurgery`; for the arguments see there.

    Both losses get the same loss scale, on which the surgery does not depend. Gradients that are not finite stay so,
    and the scaler skips that step.
    """

    def scale_for_backward(self, loss: Tensor) -> Tensor:
        """The loss times the scaler's present factor."""
        return self.loss_scaler.scale(loss)
