"""Hooks that watch semi-supervised training."""

from .fpl_diagnostics_hook import FPLDiagnosticsHook
from .iteration_seed_hook import IterationSeedHook
from .pseudo_label_visualization_hook import PseudoLabelVisualizationHook

__all__ = ['FPLDiagnosticsHook', 'IterationSeedHook', 'PseudoLabelVisualizationHook']
