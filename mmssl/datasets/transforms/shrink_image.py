"""Shrink images that are too large, and leave the others as they are."""

import cv2
from mmcv.transforms import BaseTransform

from mmssl.registry import TRANSFORMS
from mmssl.utils.values import check_number


@TRANSFORMS.register_module()
class ShrinkImage(BaseTransform):
    """Shrink an image, and its scribbles, until its longer side has at most ``max_side`` pixels.

    For methods whose time and memory grow with the pixels. True segments keep their size: predictions are brought back
    to it before they are compared. Aspect ratio is kept to the pixel; no side falls below one.

    Args:
        max_side: Pixels of the longer side, >= 1. Default: None, every image stays as it is.
    """

    def __init__(self, max_side: int | None = None) -> None:
        if max_side is not None:
            check_number(max_side, 'mmssl.ShrinkImage: `max_side`', lambda n: n >= 1, 'an integer >= 1 or None', int)
        self.max_side = max_side

    def transform(self, results: dict) -> dict:
        """Shrink ``img`` and ``gt_scribbles``."""
        height, width = results['img'].shape[:2]
        if self.max_side is None or max(height, width) <= self.max_side:
            return results
        scale = self.max_side / max(height, width)
        size = tuple(max(1, round(side * scale)) for side in (width, height))
        results['img'] = cv2.resize(results['img'], size, interpolation=cv2.INTER_AREA)
        results['img_shape'] = results['img'].shape[:2]
        if 'gt_scribbles' in results:
            scribbles = results['gt_scribbles'].astype('float64')
            results['gt_scribbles'] = cv2.resize(scribbles, size, interpolation=cv2.INTER_NEAREST).astype('int64')
        return results

    def __repr__(self) -> str:
        return f'{type(self).__name__}(max_side={self.max_side})'
