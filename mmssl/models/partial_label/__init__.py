"""What trains a partial-label classifier in place of RGD-PLL: the baselines, each a loss with its targets."""

from .cavl_loss import CAVLLoss
from .cc_loss import CCLoss
from .lws_loss import LWSLoss
from .objective import PartialLabelBatch, PartialLabelObjective
from .proden_loss import PRODENLoss
from .sample_targets import SampleTargets

__all__ = [
    'CAVLLoss',
    'CCLoss',
    'LWSLoss',
    'PRODENLoss',
    'PartialLabelBatch',
    'PartialLabelObjective',
    'SampleTargets',
]
