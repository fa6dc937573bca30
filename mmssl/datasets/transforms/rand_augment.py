"""RandAugment for training on many small images."""

import inspect
from types import MethodType
from typing import Any

import numpy as np
from mmpretrain.datasets.transforms import RandAugment as MMPretrainRandAugment

from mmssl.registry import TRANSFORMS

DRAWS = ('random_disable', 'random_magnitude', 'random_negative')


@TRANSFORMS.register_module()
class RandAugment(MMPretrainRandAugment):
    """mmpretrain's ``RandAugment`` with the same arguments and the same distribution.

    Operations draw their random numbers anew each time and cannot be made to repeat them (mmcv's
    ``cache_random_params``), for which mmcv copies an object at every draw.

    Args:
        kwargs: As for mmpretrain's: ``policies``, ``num_policies``, ``magnitude_level``, ``magnitude_std``, ...
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for operation in self.transforms:
            for name in DRAWS:
                draw = getattr(inspect.getattr_static(operation, name, None), 'func', None)
                if draw is not None:
                    setattr(operation, name, MethodType(draw, operation))

    def transform(self, results: dict) -> dict | None:
        """Apply ``num_policies`` operations, drawn with replacement."""
        for index in np.random.randint(len(self.transforms), size=self.num_policies):
            results = self.transforms[index](results)
            if results is None:
                return None
        return results
