"""Which pseudo labels count, and how much: thresholds and distribution alignment of the FixMatch family."""

from .adamatch_threshold import AdaMatchThreshold
from .base import Threshold
from .dash_threshold import DashThreshold
from .distribution_alignment import DistributionAlignment
from .fixed_threshold import FixedThreshold
from .flexmatch_threshold import FlexMatchThreshold
from .self_adaptive_threshold import SelfAdaptiveThreshold
from .softmatch_weight import SoftMatchWeight

__all__ = [
    'AdaMatchThreshold',
    'DashThreshold',
    'DistributionAlignment',
    'FixedThreshold',
    'FlexMatchThreshold',
    'SelfAdaptiveThreshold',
    'SoftMatchWeight',
    'Threshold',
]
