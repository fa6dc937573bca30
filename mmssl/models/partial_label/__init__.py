"""What trains a partial-label classifier in place of RGD-PLL: the baselines, each a loss with its targets."""

from .cavl_loss import CAVLLoss
from .cc_loss import CCLoss
from .crdpll_loss import CRDPLLLoss
from .lws_loss import LWSLoss
from .objective import PartialLabelBatch, PartialLabelObjective
from .pico_loss import PiCOLoss
from .proden_loss import PRODENLoss
from .sample_targets import SampleTargets

__all__ = [
    'CAVLLoss',
    'CCLoss',
    'CRDPLLLoss',
    'LWSLoss',
    'PRODENLoss',
    'PartialLabelBatch',
    'PartialLabelObjective',
    'PiCOLoss',
    'SampleTargets',
]
