"""Transforms of the pipelines of mmssl."""

from mmssl.registry import TRANSFORMS
from mmssl.utils.optional import is_importable, register_missing

from .cached import Cached
from .candidate_labels import CandidateLabels
from .load_segments import LoadSegments
from .multi_branch import MultiBranch
from .pack_segments import PackSegments
from .pad import Pad
from .random_pad_crop import RandomPadCrop
from .shrink_image import ShrinkImage
from .to_bgr import ToBGR
from .track_padding import TrackPadding

__all__ = [
    'Cached', 'CandidateLabels', 'LoadSegments', 'MultiBranch', 'PackSegments', 'Pad', 'RandomPadCrop', 'ShrinkImage',
    'ToBGR', 'TrackPadding'
]

if is_importable('mmseg'):
    from .pack_semi_seg_inputs import PackSemiSegInputs
    __all__ += ['PackSemiSegInputs']
else:
    register_missing(TRANSFORMS, ['PackSemiSegInputs'], 'mmseg')

if is_importable('mmpretrain'):
    from .auto_contrast import AutoContrast
    from .contrast import Contrast
    from .equalize import Equalize
    from .rand_augment import RandAugment
    __all__ += ['AutoContrast', 'Contrast', 'Equalize', 'RandAugment']
else:
    register_missing(TRANSFORMS, ['AutoContrast', 'Contrast', 'Equalize', 'RandAugment'], 'mmpretrain')
