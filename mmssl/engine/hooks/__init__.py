"""Hooks that watch semi-supervised training or keep a part of its state."""

from .ael_hook import AELHook
from .atomic_checkpoint_hook import AtomicCheckpointHook
from .ema_head_hook import EMAHeadHook
from .flexmatch_hook import FlexMatchHook
from .fpl_diagnostics_hook import FPLDiagnosticsHook
from .grad_relu_hook import GradReLUHook
from .iteration_seed_hook import IterationSeedHook
from .mean_teacher_hook import MeanTeacherHook
from .min_labels_hook import MinLabelsHook
from .online_label_smooth_hook import OnlineLabelSmoothHook
from .pseudo_label_diagnostics_hook import PseudoLabelDiagnosticsHook
from .pseudo_label_visualization_hook import PseudoLabelVisualizationHook
from .sample_targets_hook import SampleTargetsHook

__all__ = [
    'AELHook',
    'AtomicCheckpointHook',
    'EMAHeadHook',
    'FPLDiagnosticsHook',
    'FlexMatchHook',
    'GradReLUHook',
    'IterationSeedHook',
    'MeanTeacherHook',
    'MinLabelsHook',
    'OnlineLabelSmoothHook',
    'PseudoLabelDiagnosticsHook',
    'PseudoLabelVisualizationHook',
    'SampleTargetsHook',
]
