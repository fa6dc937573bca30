"""Pack an image, with its true segments and scribbles if there are any, without a segmentation library."""

import numpy as np
import torch
from mmcv.transforms import BaseTransform
from mmengine.structures import BaseDataElement, PixelData

from mmssl.registry import TRANSFORMS


@TRANSFORMS.register_module()
class PackSegments(BaseTransform):
    """``inputs`` (C, H, W) and ``data_samples``: ``gt_segments`` (A, H, W), ``gt_scribbles`` (1, H, W), as loaded.

    Args:
        meta_keys: What else of the sample goes along. Default: path and sizes.
    """

    def __init__(self, meta_keys: tuple[str, ...] = ('img_path', 'seg_map_path', 'ori_shape', 'img_shape')) -> None:
        self.meta_keys = tuple(meta_keys)

    def transform(self, results: dict) -> dict:
        """Pack ``results``, whose ``img`` is (H, W) or (H, W, C)."""
        image = results['img'] if results['img'].ndim == 3 else results['img'][..., None]
        sample = BaseDataElement(metainfo={key: results[key] for key in self.meta_keys if key in results})
        for key in ('gt_segments', 'gt_scribbles'):
            if key in results:
                values = torch.from_numpy(np.ascontiguousarray(results[key]))
                sample.set_data({key: PixelData(data=values if values.ndim == 3 else values[None])})
        inputs = torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)))
        return dict(inputs=inputs, data_samples=sample)

    def __repr__(self) -> str:
        return f'{type(self).__name__}(meta_keys={self.meta_keys})'
