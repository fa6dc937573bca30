"""Remember which pixels of an image are real and which were added by padding."""

import numpy as np
from mmcv.transforms import BaseTransform

from mmssl.registry import TRANSFORMS


@TRANSFORMS.register_module()
class TrackPadding(BaseTransform):
    """Add a map of ones that follows the image through every geometric transform.

    An image without a segmentation mask has nothing in which its padding could be marked. This transform adds
    ``results['valid_mask']`` (uint8, (H, W), all 1) and lists it in ``results['seg_fields']``, so mmseg's transforms
    treat it as one more segmentation map: what they pad, rotate in or cut out gets another value. After them
    ``valid_mask == 1`` marks the real pixels exactly; ``mmssl.PackSemiSegInputs`` packs it, and
    ``mmssl.MultiBranchDataPreprocessor`` extends it by the padding of the batch.

    Put it right after loading. Transforms that know only ``gt_seg_map`` (mmcv's ``Pad`` and ``CenterCrop``) do not move
    it: use ``mmssl.Pad`` instead of the former. No mask file is needed or looked for.
    """

    def transform(self, results: dict) -> dict:
        """Add ``valid_mask`` to ``results``.

        Args:
            results: Sample with ``img``, (H, W, C).

        Returns:
            The same dict.

        Raises:
            KeyError: There is no image yet.
        """
        if 'img' not in results:
            raise KeyError('mmssl.TrackPadding must come after the transform that loads the image (there is no `img` '
                           f'in results, only {sorted(results)})')
        results['valid_mask'] = np.ones(results['img'].shape[:2], np.uint8)
        # A new list: the data set may share one between samples.
        results['seg_fields'] = [*(key for key in results.get('seg_fields', []) if key != 'valid_mask'), 'valid_mask']
        return results

    def __repr__(self) -> str:
        return f'{type(self).__name__}()'
