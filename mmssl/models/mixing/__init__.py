"""Mixing of the images of one batch."""

from .adaptive_copy_paste import AdaptiveCopyPaste
from .adaptive_cutmix import AdaptiveCutMix
from .cutmix import CutMix

__all__ = ['AdaptiveCopyPaste', 'AdaptiveCutMix', 'CutMix']
