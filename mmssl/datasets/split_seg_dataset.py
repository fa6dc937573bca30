"""Segmentation data set whose list may have any format in use, with errors that come before the training."""

import os
from collections.abc import Sequence
from typing import Any

from mmseg.datasets import BaseSegDataset

from mmssl.registry import DATASETS
from mmssl.utils.split_list import (
    FileIndex,
    check_suffixes,
    describe_missing,
    find_label,
    find_listed,
    read_split_list,
    relative_name,
    scan_folder,
    strip_suffix,
)

PREFIXES = ('img_path', 'seg_map_path')


@DATASETS.register_module()
class SplitSegDataset(BaseSegDataset):
    """Any pair of an image folder and a label folder, whole or by a split list.

    mmseg's ``BaseSegDataset`` takes lists of ids only, and finds a missing file when training arrives at it. This one
    takes every format of :func:`read_split_list` (ids, paths, image and label separated by a tab or a space, comments)
    and checks at start that each file exists, by listing folders, not by opening files.

    Paths in a list are looked up in ``data_prefix.img_path`` (labels: ``data_prefix.seg_map_path``), then in
    ``data_root``; absolute ones are taken as they are. The label map of an image without a second column has the name
    that the image has below ``data_prefix.img_path``.

    Args:
        ann_file: Split list; empty means all images of the folder. Default: empty.
        img_suffix: Suffix(es) of the images. Default: ``'.jpg'``.
        seg_map_suffix: Suffix of the label maps. Default: ``'.png'``.
        data_root: Root of all relative paths. Default: None.
        data_prefix: ``img_path`` and ``seg_map_path``. Without ``seg_map_path``, no label is looked for.
        kwargs: As for ``BaseSegDataset``; ``metainfo=dict(classes=..., palette=...)`` for own data.

    Raises:
        FileNotFoundError: A list, folder, image or label map does not exist.
        KeyError: A name in ``data_prefix`` that is neither of the two.
        ValueError: A list names nothing, or something twice; a suffix lacks its dot.
    """

    def __init__(self,
                 ann_file: str = '',
                 img_suffix: str | Sequence[str] = '.jpg',
                 seg_map_suffix: str = '.png',
                 data_root: str | None = None,
                 data_prefix: dict | None = None,
                 **kwargs: Any) -> None:
        prefix = {'img_path': '', 'seg_map_path': ''} if data_prefix is None else dict(data_prefix)
        prefix = {key: value for key, value in prefix.items() if value is not None}
        prefix.setdefault('img_path', '')
        name = f'mmssl.{type(self).__name__}'
        unknown = sorted(set(prefix) - set(PREFIXES))
        if unknown:
            raise KeyError(f'{name}: `data_prefix` has {unknown}; allowed: {list(PREFIXES)}')
        self.img_suffixes = [img_suffix] if isinstance(img_suffix, str) else list(img_suffix)
        check_suffixes(self.img_suffixes, f'{name}: `img_suffix`')
        check_suffixes([seg_map_suffix], f'{name}: `seg_map_suffix`')
        super().__init__(
            ann_file=ann_file,
            img_suffix=self.img_suffixes[0],
            seg_map_suffix=seg_map_suffix,
            data_root=data_root,
            data_prefix=prefix,
            **kwargs)

    def load_data_list(self) -> list[dict]:
        """Find images and labels.

        Returns:
            One dict for each image, in the order of the list or sorted.
        """
        name = f'mmssl.{type(self).__name__}'
        img_dir, seg_dir = self.data_prefix['img_path'], self.data_prefix.get('seg_map_path')
        root, index = self.data_root or '', FileIndex()
        found: list[tuple[str, str | None]] = []
        if self.ann_file:
            entries = read_split_list(self.ann_file, self.img_suffixes, owner=f'{name}: `ann_file`')
            images = find_listed(
                entries, [img_dir, root], self.img_suffixes, index, f'{name}: `ann_file`={self.ann_file!r}',
                f'`data_prefix.img_path`={img_dir!r} (`img_suffix`={self.img_suffixes})')
            for entry, image in zip(entries, images, strict=True):
                found.append((image, self._label_path(relative_name(image, [img_dir, root]), entry.label, seg_dir, root,
                                                      index)))
        else:
            if not os.path.isdir(img_dir):
                raise FileNotFoundError(f'{name}: `data_prefix.img_path`={img_dir!r} is not a folder')
            for image in scan_folder(img_dir, self.img_suffixes):
                label = self._label_path(image, None, seg_dir, root, index)
                found.append((os.path.join(img_dir, image), label))
            if not found:
                raise ValueError(f'{name}: `data_prefix.img_path`={img_dir!r} holds no image with '
                                 f'`img_suffix`={self.img_suffixes}')
        absent = [label for _, label in found if label is not None and index.find(label) is None]
        if absent:
            raise FileNotFoundError(f'{name}: label maps are missing: {describe_missing(absent)}; '
                                    f'`data_prefix.seg_map_path`={seg_dir!r}, `seg_map_suffix`={self.seg_map_suffix!r}')
        owners: dict[str, str] = {}
        for image, label in found:
            if label is not None and owners.setdefault(label, image) is not image:
                raise ValueError(f'{name}: {owners[label]!r} and {image!r} have the same label map {label!r}; tell '
                                 'them apart by `img_suffix`, or name label maps in the second column of `ann_file`')
        data_list = []
        for image, label in found:
            info: dict[str, Any] = {'img_path': image}
            if label is not None:
                info['seg_map_path'] = label
            info.update(label_map=self.label_map, reduce_zero_label=self.reduce_zero_label, seg_fields=[])
            data_list.append(info)
        return data_list

    def _label_path(self, image: str, label: str | None, seg_dir: str | None, root: str,
                    index: FileIndex) -> str | None:
        """Path of the label map of one image, existing or not; None if this data set has no labels."""
        if seg_dir is None:
            return None
        if label is None:
            label = strip_suffix(image, self.img_suffixes) + self.seg_map_suffix
        return find_label(label, [seg_dir, root], index)
