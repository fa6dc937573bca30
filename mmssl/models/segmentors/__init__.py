"""Semi-supervised segmentors around stock mmseg models."""

from .ael import AELSegmentor
from .base import SemiBaseSegmentor, UnsupervisedRecord
from .cps import CrossPseudoSupervision
from .mean_teacher import ConsistencyTerm, MeanTeacherSegmentor

__all__ = [
    'AELSegmentor',
    'ConsistencyTerm',
    'CrossPseudoSupervision',
    'MeanTeacherSegmentor',
    'SemiBaseSegmentor',
    'UnsupervisedRecord',
]
