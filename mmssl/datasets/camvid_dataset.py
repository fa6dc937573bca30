"""CamVid street scenes in the common 11 classes."""

from typing import ClassVar

from mmssl.registry import DATASETS

from .split_seg_dataset import SplitSegDataset


@DATASETS.register_module()
class CamVidDataset(SplitSegDataset):
    """CamVid with label maps that hold 0 to 10, and 255 where there is no label.

    Args:
        kwargs: As for :class:`SplitSegDataset`.
    """

    METAINFO: ClassVar[dict] = {
        'classes': ('sky', 'building', 'pole', 'road', 'pavement', 'tree', 'sign', 'fence', 'car', 'pedestrian',
                    'bicyclist'),
        'palette': [[128, 128, 128], [128, 0, 0], [192, 192, 128], [128, 64, 128], [60, 40, 222], [128, 128, 0],
                    [192, 128, 128], [64, 64, 128], [64, 0, 128], [64, 64, 0], [0, 128, 192]],
    }
