"""Losses between a student's and a teacher's logits; each is a thin shell around ``mmssl.functional``."""

from .fpl_loss import FPLLoss
from .hard_pseudo_label_loss import HardPseudoLabelLoss
from .negative_learning_loss import NegativeLearningLoss
from .pseudo_label_loss import PseudoLabelLoss
from .soft_pseudo_label_loss import SoftPseudoLabelLoss

__all__ = ['FPLLoss', 'HardPseudoLabelLoss', 'NegativeLearningLoss', 'PseudoLabelLoss', 'SoftPseudoLabelLoss']
