"""Give images that a data set holds itself the form of images that are loaded from files."""

import cv2
import numpy as np
from mmcv.transforms import BaseTransform

from mmssl.registry import TRANSFORMS


@TRANSFORMS.register_module()
class ToBGR(BaseTransform):
    """Turn an RGB or gray image into three channels in the order blue, green, red.

    That is what ``LoadImageFromFile`` makes, and what transforms of color and contrast and ``ClsDataPreprocessor``
    with ``to_rgb=True`` expect. The arrays of mmpretrain's ``CIFAR10`` and ``CIFAR100`` are RGB, those of ``MNIST`` are
    gray.

    Args:
        source: ``'rgb'`` or ``'gray'``.

    Raises:
        ValueError: ``source`` is neither.
    """

    CHANNELS = {'rgb': 3, 'gray': 1}  # noqa: RUF012

    def __init__(self, source: str) -> None:
        if source not in self.CHANNELS:
            raise ValueError(f'mmssl.ToBGR: `source` must be one of {list(self.CHANNELS)}, got {source!r}')
        self.source = source

    def transform(self, results: dict) -> dict:
        """Replace ``img``.

        Args:
            results: Sample with ``img``, uint8, (H, W, 3), or (H, W) or (H, W, 1) if gray.

        Returns:
            The same dict; ``img`` is a new array, (H, W, 3).

        Raises:
            ValueError: The image has another number of channels.
        """
        image = results['img']
        channels = image.shape[2] if image.ndim == 3 else 1
        if channels != self.CHANNELS[self.source]:
            raise ValueError(f'mmssl.ToBGR: `source`={self.source!r}, but the image has {channels} channels')
        code = cv2.COLOR_RGB2BGR if self.source == 'rgb' else cv2.COLOR_GRAY2BGR
        results['img'] = cv2.cvtColor(np.ascontiguousarray(image), code)
        results['img_shape'] = results['ori_shape'] = results['img'].shape[:2]
        return results

    def __repr__(self) -> str:
        return f'{type(self).__name__}(source={self.source!r})'
