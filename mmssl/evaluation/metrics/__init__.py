"""Metrics that neither mmseg nor mmpretrain has; they need neither, only the data samples of either."""

from .calibration_error import CalibrationError

__all__ = ['CalibrationError']
