"""Cityscapes, with the split lists of semi-supervised segmentation."""

from typing import Any

from mmseg.datasets import CityscapesDataset as MMSegCityscapesDataset

from mmssl.registry import DATASETS

from .split_seg_dataset import SplitSegDataset


@DATASETS.register_module()
class CityscapesDataset(SplitSegDataset):
    """19 classes; lists in any format of :func:`read_split_list`, such as image and label paths separated by a tab.

    Args:
        img_suffix: Default: ``'_leftImg8bit.png'``.
        seg_map_suffix: Default: ``'_gtFine_labelTrainIds.png'``.
        kwargs: As for :class:`SplitSegDataset`.
    """

    METAINFO = MMSegCityscapesDataset.METAINFO

    def __init__(self,
                 img_suffix: str = '_leftImg8bit.png',
                 seg_map_suffix: str = '_gtFine_labelTrainIds.png',
                 **kwargs: Any) -> None:
        super().__init__(img_suffix=img_suffix, seg_map_suffix=seg_map_suffix, **kwargs)
