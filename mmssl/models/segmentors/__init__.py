"""Semi-supervised segmentors around stock mmseg models."""

from .base import SemiBaseSegmentor, UnsupervisedRecord
from .cps import CrossPseudoSupervision

__all__ = ['CrossPseudoSupervision', 'SemiBaseSegmentor', 'UnsupervisedRecord']
