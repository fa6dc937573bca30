"""Random crop of a padded image, and its mirror image."""

import cv2
import numpy as np
from mmcv.transforms import BaseTransform

from mmssl.registry import TRANSFORMS
from mmssl.utils.values import check_number

BORDERS = {'reflect': cv2.BORDER_REFLECT_101, 'edge': cv2.BORDER_REPLICATE, 'constant': cv2.BORDER_CONSTANT}


@TRANSFORMS.register_module()
class RandomPadCrop(BaseTransform):
    """Pad an image on all sides, cut a window of fixed size out of it and mirror it: the weak view of small images.

    mmpretrain's ``RandomCrop(padding=4, padding_mode='reflect')`` pads with a constant whatever ``padding_mode`` says.

    Args:
        crop_size: Side of the square window, > 0.
        padding: Pixels added on each side, >= 0.
        padding_mode: ``'reflect'`` (without repeating the outermost pixel, as torchvision's), ``'edge'`` or
            ``'constant'``. Default: ``'reflect'``.
        pad_val: Of ``'constant'``. Default: 0.
        flip_prob: Probability of mirroring left and right, in [0, 1]. Default: 0.

    Raises:
        ValueError: A value is not as described.
    """

    def __init__(self, crop_size: int, padding: int, padding_mode: str = 'reflect', pad_val: float = 0,
                 flip_prob: float = 0.) -> None:
        for name, value, smallest in (('crop_size', crop_size, 1), ('padding', padding, 0)):
            if isinstance(value, bool) or not isinstance(value, int) or value < smallest:
                raise ValueError(f'mmssl.RandomPadCrop: `{name}` must be an integer >= {smallest}, got {value!r}')
        if padding_mode not in BORDERS:
            raise ValueError(f'mmssl.RandomPadCrop: `padding_mode` must be one of {list(BORDERS)}, got '
                             f'{padding_mode!r}')
        check_number(flip_prob, 'mmssl.RandomPadCrop: `flip_prob`', lambda prob: 0 <= prob <= 1, 'a number in [0, 1]')
        self.crop_size, self.padding, self.flip_prob = crop_size, padding, flip_prob
        self.padding_mode, self.pad_val = padding_mode, pad_val

    def transform(self, results: dict) -> dict:
        """Cut the window, of which every place is equally probable, and mirror it.

        Args:
            results: Sample with ``img``, (H, W) or (H, W, C).

        Returns:
            The same dict with ``img``, ``img_shape`` and ``flip``.

        Raises:
            ValueError: The padded image is smaller than the window.
        """
        pad, size = self.padding, self.crop_size
        image = results['img']
        height, width = image.shape[0] + 2 * pad, image.shape[1] + 2 * pad
        if min(height, width) < size:
            raise ValueError(f'mmssl.RandomPadCrop: `crop_size`={size} is larger than an image of {image.shape[1]}x'
                             f'{image.shape[0]} pixels with `padding`={pad} on each side; resize it before')
        top = np.random.randint(height - size + 1)
        left = np.random.randint(width - size + 1)
        if pad:
            value = (self.pad_val, ) * 4
            image = cv2.copyMakeBorder(image, pad, pad, pad, pad, BORDERS[self.padding_mode], value=value)
        image = image[top:top + size, left:left + size]
        results['flip'] = self.flip_prob > 0 and np.random.rand() < self.flip_prob
        results['img'] = np.ascontiguousarray(image[:, ::-1] if results['flip'] else image)
        results['img_shape'] = (size, size)
        return results

    def __repr__(self) -> str:
        return (f'{type(self).__name__}(crop_size={self.crop_size}, padding={self.padding}, '
                f'padding_mode={self.padding_mode!r}, flip_prob={self.flip_prob})')
