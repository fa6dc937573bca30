"""Padding that keeps every segmentation map beside the image, and can put the image in the middle."""

from typing import Any

import mmcv
import numpy as np
from mmcv.transforms import Pad as MMCVPad

from mmssl.registry import TRANSFORMS


@TRANSFORMS.register_module()
class Pad(MMCVPad):
    """mmcv's ``Pad`` for all ``seg_fields`` (the original pads ``gt_seg_map`` only), so that ``valid_mask`` follows.

    Args:
        center: Whether the padding is split evenly on both sides, as in the CPS training code, an odd pixel going to
            the right or bottom; needs ``padding_mode='constant'``. Default: False, all of it right and bottom.
        kwargs: As for mmcv's ``Pad``: ``size`` (w, h), ``size_divisor``, ``pad_to_square``, ``pad_val``,
            ``padding_mode``.
    """

    def __init__(self, *args: Any, center: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if center and self.padding_mode != 'constant':
            raise ValueError("mmssl.Pad: `center=True` needs `padding_mode='constant'`, got "
                             f'{self.padding_mode!r}')
        self.center = center

    def transform(self, results: dict) -> dict:
        """Pad the image and its maps.

        Args:
            results: Sample with ``img``; the maps are those listed in ``seg_fields``, and ``gt_seg_map``.

        Returns:
            The same dict.
        """
        height, width = results['img'].shape[:2]
        self._pad_img(results)
        # These two mark, for PackSemiSegInputs, that a transform which forgets `valid_mask` has padded.
        results.pop('pad_fixed_size', None)
        results.pop('pad_size_divisor', None)
        shape = results['pad_shape'][:2]
        shift = ((shape[0] - height) // 2, (shape[1] - width) // 2) if self.center else (0, 0)
        results['img'] = _shift(results['img'], shift)
        fields = [*results.get('seg_fields', []), 'gt_seg_map']
        for key in dict.fromkeys(fields):
            if results.get(key) is not None:
                # 0 cannot be mistaken for "valid", whatever `pad_val` says about labels.
                value = 0 if key == 'valid_mask' else self.pad_val.get('seg', 255)
                mode = 'constant' if key == 'valid_mask' else self.padding_mode
                padded = mmcv.impad(results[key], shape=shape, pad_val=value, padding_mode=mode)
                results[key] = _shift(padded, shift)
        return results


def _shift(image: np.ndarray, shift: tuple[int, int]) -> np.ndarray:
    """Move an image that is padded right and bottom with a constant to the middle."""
    return np.roll(image, shift, axis=(0, 1)) if any(shift) else image
