"""STL-10: few labels and 100,000 images without any."""

from typing import ClassVar

import numpy as np

from mmssl.registry import DATASETS

from .array_dataset import ArrayDataset

SIDE = 96


@DATASETS.register_module()
class STL10(ArrayDataset):
    """STL-10 in its binary files: 5,000 training, 8,000 test and 100,000 unlabeled images of 96 x 96 pixels.

    The files are mapped, not read: the unlabeled images alone have 2.8 GB.

    Args:
        data_root: Folder with ``stl10_binary/train_X.bin``, ``train_y.bin``, ``test_X.bin``, ...
        split: ``'train'``, ``'test'``, ``'unlabeled'``, or several, such as ``'train+unlabeled'``. Default:
            ``'train'``.
        kwargs: As for :class:`ArrayDataset`.
    """

    METAINFO: ClassVar[dict] = {
        'classes': ('airplane', 'bird', 'car', 'cat', 'deer', 'dog', 'horse', 'monkey', 'ship', 'truck'),
    }
    PARTS = ('train', 'test', 'unlabeled')
    URL = 'http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz'

    def read(self, part: str) -> tuple[np.ndarray, np.ndarray | None]:
        """Images and labels of a part; see the base class."""
        path = self.file(f'stl10_binary/{part}_X.bin')
        pixels = np.memmap(path, dtype=np.uint8, mode='r')
        if len(pixels) == 0 or len(pixels) % (3 * SIDE * SIDE):
            raise ValueError(f'mmssl.STL10: {path!r} has {len(pixels)} bytes, which is no number of images of '
                             f'{3 * SIDE * SIDE} bytes each')
        # Stored by channel, then by column.
        images = pixels.reshape(-1, 3, SIDE, SIDE).transpose(0, 3, 2, 1)
        if part == 'unlabeled':
            return images, None
        labels = np.fromfile(self.file(f'stl10_binary/{part}_y.bin'), dtype=np.uint8).astype(np.int64) - 1
        return images, labels
