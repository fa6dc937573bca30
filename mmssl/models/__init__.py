"""Models, losses and data preprocessors of mmssl.

Importing this package imports neither mmseg nor mmpretrain unless it is installed; naming a piece whose library is
absent raises an error that says what to install.
"""

from mmssl.registry import MODELS
from mmssl.utils.optional import is_importable, register_missing

from . import backbones, data_preprocessors, losses, mixing, perturbation, thresholds, unsupervised  # noqa: F401

if is_importable('mmseg'):
    from . import segmentors  # noqa: F401
else:
    register_missing(MODELS, ['AELSegmentor', 'CrossPseudoSupervision', 'MeanTeacherSegmentor'], 'mmseg')

if is_importable('mmpretrain'):
    from . import classifiers, heads  # noqa: F401
else:
    register_missing(MODELS, ['ArcFaceClsHead', 'CosFaceClsHead', 'PseudoLabelClassifier'], 'mmpretrain')
