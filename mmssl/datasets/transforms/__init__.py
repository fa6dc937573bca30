"""Transforms of the semi-supervised pipelines."""

from mmssl.registry import TRANSFORMS
from mmssl.utils.optional import is_importable, register_missing

from .cached import Cached
from .multi_branch import MultiBranch
from .pad import Pad
from .track_padding import TrackPadding

__all__ = ['Cached', 'MultiBranch', 'Pad', 'TrackPadding']

if is_importable('mmseg'):
    from .pack_semi_seg_inputs import PackSemiSegInputs
    __all__ += ['PackSemiSegInputs']
else:
    register_missing(TRANSFORMS, ['PackSemiSegInputs'], 'mmseg')
