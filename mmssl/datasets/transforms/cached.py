"""Keep what the slow, deterministic start of a pipeline makes of each image."""

import copy
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from mmcv.transforms import BaseTransform
from mmengine.dataset import Compose

from mmssl.registry import TRANSFORMS


@TRANSFORMS.register_module()
class Cached(BaseTransform):
    """Run transforms once for each image, and later give out copies of what they made.

    For small networks on few cores, where workers that decode large files take time from training. Put loading and a
    first reduction of size inside, and what draws random numbers after it. Each data loader worker has a cache of
    its own, which ``persistent_workers=True`` keeps from epoch to epoch. The cached samples equal those of the plain
    transforms, so training is the same with and without it.

    Args:
        transforms: Configs of deterministic transforms, run in this order.
        max_images: Images to keep in each worker, >= 1; later ones are made anew each time. The memory of one is that
            of its arrays. Default: all.

    Raises:
        ValueError: ``transforms`` is empty, or ``max_images`` is no integer >= 1.
    """

    # What tells samples apart before anything is loaded.
    KEYS = ('img_path', 'seg_map_path')

    def __init__(
        self, transforms: Sequence[dict | Callable[[dict], dict | None]], max_images: int | None = None
    ) -> None:
        if not isinstance(transforms, Sequence) or isinstance(transforms, str) or not transforms:
            raise ValueError(f'mmssl.Cached: `transforms` must be a list of transforms, got {transforms!r}')
        if max_images is not None and (isinstance(max_images, bool) or not isinstance(max_images, int)
                                       or max_images < 1):  # yapf: disable
            raise ValueError(f'mmssl.Cached: `max_images` must be an integer >= 1 or None, got {max_images!r}')
        self.transforms = Compose(transforms)
        self.max_images = max_images
        self._cache: dict[tuple, dict[str, Any]] = {}

    def transform(self, results: dict) -> dict | None:
        """Add what the transforms make of this image.

        Args:
            results: Sample with ``img_path``.

        Returns:
            The sample with copies of everything that the transforms added or changed, or ``None`` if they reject it.

        Raises:
            KeyError: The sample has no ``img_path``.
            ValueError: A transform draws random numbers.
        """
        if 'img_path' not in results:
            raise KeyError(f'mmssl.Cached must be first in the pipeline: no `img_path` in {sorted(results)}')
        key = tuple(results.get(name) for name in self.KEYS)
        made = self._cache.get(key)
        if made is None:
            before = dict(results)
            state = _random_state()
            after = self.transforms(results)
            if _random_state() != state:
                raise ValueError(
                    'mmssl.Cached: `transforms` must be deterministic, but one of them draws random numbers, which '
                    f'would be the same for ever; put it after mmssl.Cached: {self.transforms}')
            if after is None or (self.max_images is not None and len(self._cache) >= self.max_images):
                return after
            # Containers may have been changed in place.
            made = {name: value for name, value in after.items()
                    if name not in before or value is not before[name] or isinstance(value, (list, dict, set))}
            self._cache[key] = made
        # Copies, since later transforms may write into what they get.
        return {**results, **copy.deepcopy(made)}

    def __repr__(self) -> str:
        return f'{type(self).__name__}(transforms={self.transforms}, max_images={self.max_images})'


def _random_state() -> tuple:
    """Where the three generators stand, for comparison."""
    kind, keys, position, *rest = np.random.get_state()
    return random.getstate(), kind, keys.tobytes(), position, tuple(rest), torch.get_rng_state().numpy().tobytes()
