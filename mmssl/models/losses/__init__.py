"""Losses, each a thin shell around ``mmssl.functional``: between two sets of logits, and one against labels."""

from .consistency_mse_loss import ConsistencyMSELoss
from .fpl_loss import FPLLoss
from .hard_pseudo_label_loss import HardPseudoLabelLoss
from .negative_learning_loss import NegativeLearningLoss
from .ohem_cross_entropy_loss import OHEMCrossEntropyLoss
from .pseudo_label_loss import PseudoLabelLoss
from .soft_pseudo_label_loss import SoftPseudoLabelLoss

__all__ = [
    'ConsistencyMSELoss',
    'FPLLoss',
    'HardPseudoLabelLoss',
    'NegativeLearningLoss',
    'OHEMCrossEntropyLoss',
    'PseudoLabelLoss',
    'SoftPseudoLabelLoss',
]
