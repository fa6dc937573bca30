"""Losses, each a thin shell around ``mmssl.functional``: between two sets of logits, and against labels."""

from .adr_loss import ADRLoss
from .combined_loss import CombinedLoss
from .consistency_mse_loss import ConsistencyMSELoss
from .entropy_loss import EntropyLoss
from .fpl_loss import FPLLoss
from .hard_pseudo_label_loss import HardPseudoLabelLoss
from .label_loss import LabelLoss
from .negative_learning_loss import NegativeLearningLoss
from .ohem_cross_entropy_loss import OHEMCrossEntropyLoss
from .online_label_smooth_loss import OnlineLabelSmoothLoss
from .pseudo_label_loss import PseudoLabelLoss
from .soft_pseudo_label_loss import SoftPseudoLabelLoss

__all__ = [
    'ADRLoss',
    'CombinedLoss',
    'ConsistencyMSELoss',
    'EntropyLoss',
    'FPLLoss',
    'HardPseudoLabelLoss',
    'LabelLoss',
    'NegativeLearningLoss',
    'OHEMCrossEntropyLoss',
    'OnlineLabelSmoothLoss',
    'PseudoLabelLoss',
    'SoftPseudoLabelLoss',
]
