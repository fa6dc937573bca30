"""Semi-supervised classifiers around stock mmpretrain models."""

from .base import ClassificationRecord, SemiBaseClassifier
from .partial_label import PartialLabelClassifier
from .pseudo_label import PseudoLabelClassifier

__all__ = ['ClassificationRecord', 'PartialLabelClassifier', 'PseudoLabelClassifier', 'SemiBaseClassifier']
