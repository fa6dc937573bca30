"""Street view house numbers: one digit in the middle of each image."""

from typing import ClassVar

import numpy as np

from mmssl.registry import DATASETS
from mmssl.utils.optional import is_importable

from .array_dataset import ArrayDataset


@DATASETS.register_module()
class SVHN(ArrayDataset):
    """SVHN, format 2: 73,257 training, 26,032 test and 531,131 extra images of 32 x 32 pixels in MATLAB files.

    Args:
        data_root: Folder with ``train_32x32.mat``, ``test_32x32.mat``, ``extra_32x32.mat``.
        split: ``'train'``, ``'test'``, ``'extra'``, or several, such as ``'train+extra'``. Default: ``'train'``.
        kwargs: As for :class:`ArrayDataset`.

    Raises:
        ImportError: scipy, which reads such files, is not installed.
    """

    METAINFO: ClassVar[dict] = {'classes': tuple('0123456789')}
    PARTS = ('train', 'test', 'extra')
    URL = 'http://ufldl.stanford.edu/housenumbers/'

    def read(self, part: str) -> tuple[np.ndarray, np.ndarray | None]:
        """Images and labels of a part; see the base class."""
        path = self.file(f'{part}_32x32.mat')
        if not is_importable('scipy'):
            raise ImportError('mmssl.SVHN: the files of SVHN are read with scipy, which is not installed: run '
                              '`pip install scipy`')
        from scipy.io import loadmat
        try:
            content = loadmat(path)
            images, labels = content['X'], content['y'].reshape(-1)
        except Exception as error:  # a damaged file can raise anything
            raise ValueError(f'mmssl.SVHN: {path!r} cannot be read: {type(error).__name__}: {error}') from error
        # Stored with the number of the image last, and with label 10 for the digit 0.
        return np.ascontiguousarray(images.transpose(3, 0, 1, 2)), labels.astype(np.int64) % 10
