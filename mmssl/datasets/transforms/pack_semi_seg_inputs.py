"""Pack a view of an unlabeled image, with the map of its real pixels."""

import numpy as np
import torch
from mmengine.structures import PixelData
from mmseg.datasets.transforms import PackSegInputs

from mmssl.registry import TRANSFORMS


@TRANSFORMS.register_module()
class PackSemiSegInputs(PackSegInputs):
    """mmseg's ``PackSegInputs``, plus ``valid_mask`` if the pipeline tracks padding (``mmssl.TrackPadding``).

    ``data_samples.valid_mask`` is a ``PixelData`` with bool data of shape (1, H, W): True where the pixel is real. A
    truth for analysis (``gt_seg_map``) is packed as ``gt_sem_seg`` as ever; no loss of an unlabeled branch reads it.

    Args:
        meta_keys: As in ``PackSegInputs``. Default: the same keys and ``sample_idx``.
    """

    def __init__(self,
                 meta_keys: tuple[str, ...] = ('img_path', 'seg_map_path', 'ori_shape', 'img_shape', 'pad_shape',
                                               'scale_factor', 'flip', 'flip_direction', 'reduce_zero_label',
                                               'sample_idx')) -> None:
        super().__init__(meta_keys=meta_keys)

    def transform(self, results: dict) -> dict:
        """Pack one view.

        Args:
            results: Sample with ``img`` and, if padding is tracked, ``valid_mask``.

        Returns:
            ``inputs`` (C, H, W) and ``data_samples``.

        Raises:
            ValueError: A transform changed the image, but not ``valid_mask``.
        """
        packed = super().transform(results)
        valid = results.get('valid_mask')
        if valid is None:
            return packed
        height, width = results['img'].shape[:2]
        if 'pad_fixed_size' in results or valid.shape[:2] != (height, width):
            raise ValueError(f'mmssl.PackSemiSegInputs: `valid_mask` {valid.shape[:2]} no longer follows the image '
                             f'{(height, width)}: after mmssl.TrackPadding, a transform changed the image without the '
                             'maps in `seg_fields`. mmcv.Pad and mmcv.CenterCrop do so: write `mmssl.Pad`, '
                             '`RandomCrop`, or leave padding to `model.data_preprocessor` (`size=crop_size`)')
        data = torch.from_numpy(np.ascontiguousarray(valid == 1))[None]
        packed['data_samples'].set_data({'valid_mask': PixelData(data=data)})
        return packed
