"""Models, losses and data preprocessors of mmssl.

Importing this package imports neither mmseg nor mmpretrain unless it is installed; naming a piece whose library is
absent raises an error that says what to install.
"""

from mmssl.registry import MODELS
from mmssl.utils.optional import is_importable, register_missing

from . import (  # noqa: F401
    backbones,
    data_preprocessors,
    estimators,
    losses,
    mixing,
    partial_label,
    perturbation,
    thresholds,
    unsupervised,
)

if is_importable('mmseg'):
    from . import segmentors  # noqa: F401
else:
    register_missing(MODELS, ['AELSegmentor', 'CrossPseudoSupervision', 'MeanTeacherSegmentor'], 'mmseg')

if is_importable('mmpretrain'):
    from . import classifiers, heads  # noqa: F401
else:
    register_missing(MODELS, ['ArcFaceClsHead', 'CosFaceClsHead', 'PartialLabelClassifier', 'PseudoLabelClassifier'],
                     'mmpretrain')
