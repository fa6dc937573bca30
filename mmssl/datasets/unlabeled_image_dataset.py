"""Images without labels: a folder, a glob, a list, or several of these."""

import glob
import os
from collections.abc import Sequence
from typing import Any

from mmengine.dataset import BaseDataset

from mmssl.registry import DATASETS
from mmssl.utils.split_list import (
    IMAGE_SUFFIXES,
    FileIndex,
    check_suffixes,
    describe_missing,
    find_image,
    find_label,
    find_listed,
    read_split_list,
    relative_name,
    scan_folder,
    scan_glob,
    strip_suffix,
)

LIST_SUFFIXES = ('.txt', '.lst', '.list')


@DATASETS.register_module()
class UnlabeledImageDataset(BaseDataset):
    """Images, and nothing else: no mask is asked for, opened or faked.

    Works for segmentation and for classification. Three ways to say which images, each of them one value or a list:

    - ``img_path='my_images'``: a folder;
    - ``img_path='clips/*/frame_*.png'``: a glob, or the path of one image;
    - ``ann_file='splits/unlabeled.txt'``: a list of ids or paths (see :func:`read_split_list` for the formats), looked
      up in ``img_path`` (a folder) if given, then in ``data_root``. Label columns are ignored.

    The images of a folder or a glob come in sorted order, those of a list in its order.

    Args:
        img_path: Folder(s), image(s), glob(s) or list file(s) (``.txt``), relative to ``data_root``. With ``ann_file``:
            the folder(s) that hold the listed images. Default: None.
        ann_file: List file(s), relative to ``data_root``. Default: none.
        data_root: Root of all relative paths. Default: the working directory.
        suffix: Suffix(es) of images, compared without regard to case in folders; also what is appended to the ids of a
            list. Default: all usual image suffixes.
        recursive: Whether folders are searched in depth. Default: True.
        exclude: List file(s) or folder(s) whose images are left out, for example the labeled list when labeled and
            unlabeled images lie in one folder. Compared by path; a list or folder that names no image which exists is
            an error. Ids are looked up in ``img_path`` (a glob: in the folder above its first wildcard), then in
            ``data_root``. Default: None.
        seg_map_path: **For analysis only**: folder of the truth of these images, relative to ``data_root``. No loss
            sees it, but diagnostics can score the pseudo labels; the pipeline must then load it (``LoadAnnotations``).
            Default: None, no mask is looked for.
        seg_map_suffix: Suffix of the truth, in place of the image's. Default: ``'.png'``.
        reduce_zero_label: Of the truth, as in mmseg. Default: False.
        kwargs: ``pipeline``, ``indices``, ``lazy_init``, ... of mmengine's ``BaseDataset``.

    Raises:
        FileNotFoundError: A folder, list or listed image does not exist.
        ValueError: No image is found, or one is named twice; ``exclude`` names none.
    """

    def __init__(self,
                 img_path: str | Sequence[str] | None = None,
                 ann_file: str | Sequence[str] = '',
                 data_root: str | None = '',
                 suffix: str | Sequence[str] = IMAGE_SUFFIXES,
                 recursive: bool = True,
                 exclude: str | Sequence[str] | None = None,
                 seg_map_path: str | None = None,
                 seg_map_suffix: str = '.png',
                 reduce_zero_label: bool = False,
                 **kwargs: Any) -> None:
        if 'data_prefix' in kwargs:
            raise ValueError('mmssl.UnlabeledImageDataset: has no `data_prefix`; write img_path=... (for analysis also '
                             f'seg_map_path=...) in its place, got {kwargs["data_prefix"]!r}')
        root = os.fspath(data_root or '')
        self.img_path = [os.path.join(root, path) for path in _as_list(img_path)]
        self.ann_files = [os.path.join(root, path) for path in _as_list(ann_file)]
        self.exclude = [os.path.join(root, path) for path in _as_list(exclude)]
        if not self.img_path and not self.ann_files:
            raise ValueError('mmssl.UnlabeledImageDataset: give `img_path` (folder or glob) or `ann_file` (list)')
        self.suffixes = _as_list(suffix)
        if not self.suffixes:
            raise ValueError('mmssl.UnlabeledImageDataset: `suffix` is empty')
        check_suffixes([*self.suffixes, seg_map_suffix], 'mmssl.UnlabeledImageDataset: `suffix`, `seg_map_suffix`')
        self.recursive = recursive
        self.seg_map_path = None if seg_map_path is None else os.path.join(root, seg_map_path)
        self.seg_map_suffix = seg_map_suffix
        self.reduce_zero_label = reduce_zero_label
        # The paths are joined above, since mmengine joins only single strings.
        super().__init__(ann_file='', data_root=root, data_prefix={}, **kwargs)

    def load_data_list(self) -> list[dict]:
        """Find the images.

        Returns:
            One dict for each image: ``img_path``, ``seg_fields`` and, for analysis, ``seg_map_path`` and how to read
            it.
        """
        index = FileIndex()
        found = self._listed(index) if self.ann_files else self._searched(index)
        left_out = self._excluded(index)
        if left_out:
            found = [item for item in found if os.path.realpath(item[0]) not in left_out]
        if not found:
            raise ValueError('mmssl.UnlabeledImageDataset: no image is left '
                             f'({self._where()}, `suffix`={self.suffixes})')
        data_list = []
        for path, stem, label in found:
            info: dict[str, Any] = {'img_path': path, 'seg_fields': []}
            if self.seg_map_path is not None:
                info['seg_map_path'] = self._truth(stem, label, index)
                info['label_map'] = None
                info['reduce_zero_label'] = self.reduce_zero_label
            data_list.append(info)
        if self.seg_map_path is not None:
            missing = [info['seg_map_path'] for info in data_list if index.find(info['seg_map_path']) is None]
            if missing:
                raise FileNotFoundError('mmssl.UnlabeledImageDataset: `seg_map_path` (truth for analysis) lacks '
                                        f'{describe_missing(missing)}')
        return data_list

    def _where(self) -> str:
        """The keys that say where to look, for messages."""
        keys = {'img_path': self.img_path, 'ann_file': self.ann_files, 'exclude': self.exclude}
        return ', '.join(f'`{key}`={value}' for key, value in keys.items() if value)

    def _listed(self, index: FileIndex) -> list[tuple[str, str, str | None]]:
        """Images named by ``ann_file``: path, stem, label column."""
        found, seen = [], {}
        for file in self.ann_files:
            found += self._listed_in(file, 'ann_file', [*self.img_path, self.data_root], index)
        for path, _, _ in found:
            if os.path.normpath(path) in seen:
                raise ValueError(f'mmssl.UnlabeledImageDataset: `ann_file`={self.ann_files} names {path!r} twice')
            seen[os.path.normpath(path)] = True
        return found

    def _listed_in(self, file: str, key: str, folders: list[str],
                   index: FileIndex) -> list[tuple[str, str, str | None]]:
        """Images of one list: path, stem, label column."""
        owner = f'mmssl.UnlabeledImageDataset: `{key}`'
        entries = read_split_list(file, self.suffixes, owner=owner)
        where = f'{[folder or "." for folder in folders]} with any `suffix` of {self.suffixes}'
        paths = find_listed(entries, folders, self.suffixes, index, f'{owner}={file!r}', where)
        return [(path, strip_suffix(relative_name(path, folders), self.suffixes), entry.label)
                for path, entry in zip(paths, entries, strict=True)]

    def _searched(self, index: FileIndex) -> list[tuple[str, str, str | None]]:
        """Images of the folders, globs and lists in ``img_path``."""
        found: dict[str, tuple[str, str, str | None]] = {}
        for place in self.img_path:
            if place.lower().endswith(LIST_SUFFIXES) and not os.path.isdir(place):
                items = self._listed_in(place, 'img_path', [self.data_root], index)
            elif os.path.isdir(place):
                items = [(os.path.join(place, name), strip_suffix(name, self.suffixes), None)
                         for name in scan_folder(place, self.suffixes, self.recursive)]
            elif os.path.isfile(place) and place.lower().endswith(tuple(self.suffixes)):
                items = [(place, strip_suffix(os.path.basename(place), self.suffixes), None)]
            elif glob.has_magic(self._below_root(place)):
                base = self._folder_of(place)
                items = [(path, strip_suffix(os.path.relpath(path, base), self.suffixes), None)
                         for path in scan_glob(self._below_root(place), self.suffixes, self.data_root)]
            else:
                raise FileNotFoundError(f'mmssl.UnlabeledImageDataset: `img_path`={place!r} is neither a folder, '
                                        'an image, a glob nor a list (.txt) that exists')
            if not items:
                raise ValueError(f'mmssl.UnlabeledImageDataset: `img_path`={place!r} holds no image with any `suffix` '
                                 f'of {self.suffixes}')
            # Two overlapping globs are no mistake: an image counts once.
            for item in items:
                found.setdefault(os.path.normpath(item[0]), item)
        return list(found.values())

    def _excluded(self, index: FileIndex) -> set[str]:
        """Real paths of the images that ``exclude`` names."""
        paths: list[str] = []
        folders = [*map(self._folder_of, self.img_path), self.data_root]
        for place in self.exclude:
            if os.path.isdir(place):
                named = [os.path.join(place, name) for name in scan_folder(place, self.suffixes)]
            else:
                entries = read_split_list(place, self.suffixes, owner='mmssl.UnlabeledImageDataset: `exclude`')
                resolved = (find_image(entry.image, folders, self.suffixes, index) for entry in entries)
                # A list may name images of other folders too: those cannot be in this data set.
                named = [path for path in resolved if path is not None]
            if not named:
                first = '' if os.path.isdir(place) else f' (first: {entries[0].image})'
                raise ValueError(f'mmssl.UnlabeledImageDataset: `exclude`={place!r} names no image that exists{first}; '
                                 f'what a list names is looked up in {[folder or "." for folder in folders]} with any '
                                 f'`suffix` of {self.suffixes}')
            paths += named
        return {os.path.realpath(path) for path in paths}

    def _below_root(self, place: str) -> str:
        """``place`` without ``data_root``, whose own name may hold what looks like a wildcard."""
        start = os.path.join(self.data_root, '')
        return place[len(start):] if self.data_root and place.startswith(start) else place

    def _folder_of(self, place: str) -> str:
        """``place`` itself, or, if it is a glob, the folder above its first wildcard."""
        if os.path.isdir(place) or not glob.has_magic(self._below_root(place)):
            return place
        fixed = _fixed_part(self._below_root(place))
        return os.path.join(self.data_root, fixed)

    def _truth(self, stem: str, label: str | None, index: FileIndex) -> str:
        """Path of the truth of one image."""
        assert self.seg_map_path is not None
        return find_label(label or stem + self.seg_map_suffix, [self.seg_map_path, self.data_root], index)


def _as_list(value: str | os.PathLike | Sequence[str] | None) -> list[str]:
    """Nothing, one value or several, as a list of strings."""
    if value is None or value == '':
        return []
    if isinstance(value, (str, os.PathLike)):
        return [os.fspath(value)]
    return [os.fspath(item) for item in value]


def _fixed_part(pattern: str) -> str:
    """Folder above the first wildcard of a glob."""
    parts = pattern.split(os.sep)
    fixed = []
    for part in parts[:-1]:
        if glob.has_magic(part):
            break
        fixed.append(part)
    return os.sep.join(fixed) or (os.sep if pattern.startswith(os.sep) else '.')
