"""Metrics that neither mmseg nor mmpretrain has; they need neither, only data samples."""

from .calibration_error import CalibrationError
from .covering_rate import CoveringRate
from .face_verification import FaceVerification
from .pseudo_label_quality import PseudoLabelQuality
from .segment_matching_iou import SegmentMatchingIoU

__all__ = ['CalibrationError', 'CoveringRate', 'FaceVerification', 'PseudoLabelQuality', 'SegmentMatchingIoU']
