"""Data sets whose files hold many images as arrays, read piece by piece."""

import os
from typing import Any, ClassVar

import numpy as np
from mmpretrain.datasets import BaseDataset

from mmssl.utils.image_paths import MEMORY


class ArrayDataset(BaseDataset):
    """Images in arrays that stay in their files, or in memory once; a sample is cut out when it is asked for.

    Samples have ``img`` (uint8, RGB, (H, W, 3)), a name in place of a path (``memory://STL10/<root>/train#17``), and
    ``gt_label`` where there are labels.

    Args:
        data_root: Folder of the official files. Nothing is downloaded.
        split: A part of the data set, or several joined by ``+``, in this order.
        kwargs: ``pipeline``, ``indices``, ``test_mode``, ... of mmpretrain's ``BaseDataset``.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: There is no such part, or a file is damaged.
    """

    PARTS: ClassVar[tuple[str, ...]] = ()
    URL: ClassVar[str] = ''

    def __init__(self, data_root: str, split: str = 'train', **kwargs: Any) -> None:
        name = type(self).__name__
        self.split = split
        self.parts = split.split('+') if isinstance(split, str) else []
        if not self.parts or len(set(self.parts)) != len(self.parts) or not set(self.parts) <= set(self.PARTS):
            raise ValueError(f'mmssl.{name}: `split` must be one of {list(self.PARTS)}, or several of them joined by '
                             f'"+", got {split!r}')
        self._images: dict[str, np.ndarray] = {}
        super().__init__(ann_file='', data_root=data_root, **kwargs)

    def read(self, part: str) -> tuple[np.ndarray, np.ndarray | None]:
        """Images of a part, uint8, (N, H, W, 3), RGB, and their labels, (N,), or None."""
        raise NotImplementedError

    def file(self, name: str) -> str:
        """Path of one of the official files.

        Raises:
            FileNotFoundError: It is missing.
        """
        path = os.path.join(self.data_root or '', name)
        if not os.path.isfile(path):
            raise FileNotFoundError(f'mmssl.{type(self).__name__}: `data_root` lacks {path!r}; nothing is downloaded, '
                                    f'the files are at {self.URL}')
        return path

    def load_data_list(self) -> list[dict]:
        """One dict for each image."""
        root = os.path.abspath(self.data_root or '')
        infos = []
        for part in self.parts:
            images, labels = self.read(part)
            self._images[part] = images
            if labels is not None and len(labels) != len(images):
                raise ValueError(f'mmssl.{type(self).__name__}: part {part!r} has {len(images)} images, but '
                                 f'{len(labels)} labels')
            for number in range(len(images)):
                info: dict[str, Any] = dict(
                    img_path=f'{MEMORY}{type(self).__name__}{root}/{part}#{number}', part=part, number=number)
                if labels is not None:
                    info['gt_label'] = int(labels[number])
                infos.append(info)
        return infos

    def prepare_data(self, idx: int) -> Any:
        """Sample after the pipeline, which gets the image."""
        info = self.get_data_info(idx)
        info['img'] = np.array(self._images[info['part']][info['number']])
        info['img_shape'] = info['ori_shape'] = info['img'].shape[:2]
        return self.pipeline(info)
