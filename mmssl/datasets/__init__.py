"""Data sets, samplers and transforms for learning from labeled and unlabeled images together."""

from mmssl.registry import DATASETS
from mmssl.utils.optional import is_importable, register_missing
from mmssl.utils.split_list import SplitEntry, read_split_list

from .face_pairs_dataset import FacePairsDataset
from .labeled_subset import LabeledSubset
from .multi_source_dataset import MultiSourceDataset
from .noisy_label_dataset import NoisyLabelDataset
from .partial_label_dataset import PartialLabelDataset
from .partial_label_samples import PartialLabelSamples, partial_label_samples, register_samples
from .samplers import Draw, MultiSourceSampler, describe_sources, nearest_batch_sizes
from .seeding import stateless_randomness
from .subset import Subset, full_length
from .transforms import *  # noqa: F403
from .transforms import __all__ as _transforms
from .unlabeled_image_dataset import UnlabeledImageDataset

__all__ = [
    'Draw', 'FacePairsDataset', 'LabeledSubset', 'MultiSourceDataset', 'MultiSourceSampler', 'NoisyLabelDataset',
    'PartialLabelDataset', 'PartialLabelSamples', 'SplitEntry', 'Subset', 'UnlabeledImageDataset', 'describe_sources',
    'full_length', 'nearest_batch_sizes', 'partial_label_samples', 'read_split_list', 'register_samples',
    'stateless_randomness', *_transforms
]

if is_importable('mmseg'):
    from .camvid_dataset import CamVidDataset
    from .cityscapes_dataset import CityscapesDataset
    from .split_seg_dataset import SplitSegDataset
    from .voc_dataset import VOCDataset
    __all__ += ['CamVidDataset', 'CityscapesDataset', 'SplitSegDataset', 'VOCDataset']
else:
    register_missing(DATASETS, ['CamVidDataset', 'CityscapesDataset', 'SplitSegDataset', 'VOCDataset'], 'mmseg')

if is_importable('mmpretrain'):
    from .class_folder_dataset import ClassFolderDataset
    from .fer2013_dataset import FER2013Dataset
    from .stl10 import STL10
    from .svhn import SVHN
    __all__ += ['STL10', 'SVHN', 'ClassFolderDataset', 'FER2013Dataset']
else:
    register_missing(DATASETS, ['STL10', 'SVHN', 'ClassFolderDataset', 'FER2013Dataset'], 'mmpretrain')
