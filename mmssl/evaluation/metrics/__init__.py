"""Metrics that neither mmseg nor mmpretrain has; they need neither, only data samples."""

from .calibration_error import CalibrationError
from .face_verification import FaceVerification
from .segment_matching_iou import SegmentMatchingIoU

__all__ = ['CalibrationError', 'FaceVerification', 'SegmentMatchingIoU']
