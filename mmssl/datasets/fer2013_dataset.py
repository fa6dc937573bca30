"""FER2013, gray faces with one of seven emotions, from the file of its competition."""

import csv
import os
import warnings
from typing import Any, ClassVar

import numpy as np
from mmpretrain.datasets import BaseDataset

from mmssl.registry import DATASETS
from mmssl.utils.values import check_choice

CLASSES = ('anger', 'disgust', 'fear', 'happiness', 'sadness', 'surprise', 'neutral')
SPLITS = {'train': 'Training', 'val': 'PublicTest', 'test': 'PrivateTest'}
SIDE = 48


@DATASETS.register_module()
class FER2013Dataset(BaseDataset):
    """28,709 training, 3,589 validation and 3,589 test faces of 48 x 48 pixels (Goodfellow et al., 2013).

    ``fer2013.csv`` (also called ``icml_face_data.csv``) has the columns ``emotion``, ``pixels`` and ``Usage``. Images
    come as three equal channels, as networks for colors take them.

    Args:
        data_root: Folder of ``ann_file``.
        split: ``'train'`` (Training), ``'val'`` (PublicTest) or ``'test'`` (PrivateTest).
        ann_file: The file, relative to ``data_root``. Default: ``'fer2013.csv'``.
        **kwargs: ``pipeline`` and other arguments of mmpretrain's ``BaseDataset``.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: ``split`` is none of these, or a line of the file is not as described.
    """

    METAINFO: ClassVar[dict] = {'classes': CLASSES}

    def __init__(self, data_root: str = '', split: str = 'train', ann_file: str = 'fer2013.csv', **kwargs: Any) -> None:
        check_choice(split, SPLITS, 'mmssl.FER2013Dataset: `split`')
        self.split = split
        super().__init__(ann_file=ann_file, data_root=data_root, test_mode=split != 'train', **kwargs)

    def load_data_list(self) -> list[dict]:
        """Read the images of the split: ``img``, uint8, (48, 48, 3), and ``gt_label``."""
        if not os.path.isfile(self.ann_file):
            raise FileNotFoundError(f'mmssl.FER2013Dataset: there is no file {self.ann_file!r} (`data_root`, '
                                    '`ann_file`); download fer2013.csv of the competition "challenges in '
                                    'representation learning: facial expression recognition"')
        with open(self.ann_file, newline='', encoding='utf-8') as file:
            rows = csv.reader(file)
            columns = [name.strip() for name in next(rows, [])]
            missing = {'emotion', 'pixels', 'Usage'} - set(columns)
            if missing:
                raise ValueError(f'mmssl.FER2013Dataset: {self.ann_file!r} must have the columns emotion, pixels and '
                                 f'Usage; its first line is {columns[:5]}')
            emotion, pixels, usage = (columns.index(name) for name in ('emotion', 'pixels', 'Usage'))
            samples = [self._sample(row[emotion], row[pixels], number) for number, row in enumerate(rows, 2)
                       if len(row) == len(columns) and row[usage].strip() == SPLITS[self.split]]
        if not samples:
            raise ValueError(f'mmssl.FER2013Dataset: {self.ann_file!r} has no line whose Usage is '
                             f'{SPLITS[self.split]!r} (`split`={self.split!r})')
        return samples

    def _sample(self, emotion: str, pixels: str, line: int) -> dict:
        where = f'mmssl.FER2013Dataset: {self.ann_file!r}, line {line}'
        try:
            with warnings.catch_warnings():
                # What NumPy only warns of: text that is no number.
                warnings.simplefilter('error', DeprecationWarning)
                image = np.fromstring(pixels, np.float32, sep=' ')
        except (ValueError, DeprecationWarning) as error:
            raise ValueError(f'{where}: pixels are no numbers: {pixels[:40]!r}...') from error
        if emotion.strip() not in map(str, range(len(CLASSES))) or image.size != SIDE * SIDE:
            raise ValueError(f'{where}: an emotion of 0 to {len(CLASSES) - 1} and {SIDE * SIDE} pixels are expected, '
                             f'got emotion {emotion!r} and {image.size} pixels')
        if image.min() < 0 or image.max() > 255:
            raise ValueError(f'{where}: pixels go from {image.min():g} to {image.max():g}, outside 0 to 255')
        image = image.astype(np.uint8).reshape(SIDE, SIDE, 1)
        return dict(img=np.repeat(image, 3, axis=2), gt_label=int(emotion))
