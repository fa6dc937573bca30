"""Registered losses: thin shells over ``mmssl.functional``."""

from .fpl_loss import FPLLoss
from .hard_pseudo_label_loss import HardPseudoLabelLoss
from .negative_learning_loss import NegativeLearningLoss
from .soft_pseudo_label_loss import SoftPseudoLabelLoss

__all__ = ['FPLLoss', 'HardPseudoLabelLoss', 'NegativeLearningLoss', 'SoftPseudoLabelLoss']
