"""mmssl: learning from few, ambiguous or noisy labels, for OpenMMLab: segmentation and classification."""

from mmssl.utils.stack import check_stack

check_stack()  # before anything that imports mmengine, so that a missing or mismatched stack gets one clear sentence

from mmssl.utils.paths import config_path  # noqa: E402
from mmssl.version import __version__  # noqa: E402

__all__ = ['__version__', 'config_path']
