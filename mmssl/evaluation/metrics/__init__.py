"""Metrics that neither mmseg nor mmpretrain has; they need neither, only data samples."""

from .calibration_error import CalibrationError
from .segment_matching_iou import SegmentMatchingIoU

__all__ = ['CalibrationError', 'SegmentMatchingIoU']
