"""Semi-supervised classifiers around stock mmpretrain models."""

from .base import ClassificationRecord, SemiBaseClassifier
from .pseudo_label import PseudoLabelClassifier

__all__ = ['ClassificationRecord', 'PseudoLabelClassifier', 'SemiBaseClassifier']
