"""Data sets, samplers and transforms for learning from labeled and unlabeled images together."""

from mmssl.registry import DATASETS
from mmssl.utils.optional import is_importable, register_missing
from mmssl.utils.split_list import SplitEntry, read_split_list

from .multi_source_dataset import MultiSourceDataset
from .samplers import Draw, MultiSourceSampler, describe_sources, nearest_batch_sizes
from .seeding import stateless_randomness
from .transforms import *  # noqa: F403
from .transforms import __all__ as _transforms
from .unlabeled_image_dataset import UnlabeledImageDataset

__all__ = [
    'Draw', 'MultiSourceDataset', 'MultiSourceSampler', 'SplitEntry', 'UnlabeledImageDataset', 'describe_sources',
    'nearest_batch_sizes', 'read_split_list', 'stateless_randomness', *_transforms
]

if is_importable('mmseg'):
    from .camvid_dataset import CamVidDataset
    from .cityscapes_dataset import CityscapesDataset
    from .split_seg_dataset import SplitSegDataset
    from .voc_dataset import VOCDataset
    __all__ += ['CamVidDataset', 'CityscapesDataset', 'SplitSegDataset', 'VOCDataset']
else:
    register_missing(DATASETS, ['CamVidDataset', 'CityscapesDataset', 'SplitSegDataset', 'VOCDataset'], 'mmseg')
