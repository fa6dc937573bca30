"""Loops of training and validation."""

from .feature_test_loop import FeatureTestLoop
from .feature_val_loop import FeatureValLoop
from .held_out_val_loop import HeldOutValLoop
from .resumable_epoch_based_train_loop import ResumableEpochBasedTrainLoop
from .resumable_iter_based_train_loop import ResumableIterBasedTrainLoop
from .sub_model_val_loop import SubModelValLoop

__all__ = [
    'FeatureTestLoop', 'FeatureValLoop', 'HeldOutValLoop', 'ResumableEpochBasedTrainLoop',
    'ResumableIterBasedTrainLoop', 'SubModelValLoop'
]
