"""Pascal VOC 2012, with the split lists of semi-supervised segmentation."""

from typing import Any

from mmseg.datasets import PascalVOCDataset

from mmssl.registry import DATASETS

from .split_seg_dataset import SplitSegDataset


@DATASETS.register_module()
class VOCDataset(SplitSegDataset):
    """20 classes and background; lists in any format of :func:`read_split_list`.

    Args:
        img_suffix: Default: ``'.jpg'``.
        seg_map_suffix: Default: ``'.png'``.
        kwargs: As for :class:`SplitSegDataset`.
    """

    METAINFO = PascalVOCDataset.METAINFO

    def __init__(self, img_suffix: str = '.jpg', seg_map_suffix: str = '.png', **kwargs: Any) -> None:
        super().__init__(img_suffix=img_suffix, seg_map_suffix=seg_map_suffix, **kwargs)
