"""The few samples of a data set whose labels may be used."""

import os
from typing import Any

import numpy as np
from mmengine.dataset import BaseDataset

from mmssl.registry import DATASETS
from mmssl.utils.split_list import IMAGE_SUFFIXES, read_split_list, strip_suffix

from .subset import Subset


@DATASETS.register_module()
class LabeledSubset(Subset):
    """Takes the labeled samples out of a labeled data set: by a list file, or some of each class at random.

    ``per_class`` does what the code base of most published numbers does (USB): class by class, the indices of the class
    are shuffled by NumPy's legacy generator, seeded once, and the first ``per_class`` are taken. The same seed gives
    the same samples with any version of NumPy, but not with another order of the data set (class folders are sorted,
    the official files of CIFAR are not).

    A sample's ``sample_idx`` is its index in the whole data set, and so are the numbers in a list of a data set without
    files.

    Args:
        dataset: The whole data set, or its config: anything derived from mmengine's ``BaseDataset`` that states
            ``gt_label``.
        ann_file: List of the labeled samples: image paths below the folder of the images, with or without suffix, or
            indices for data sets that hold the images themselves (CIFAR, MNIST); as ``tools/datasets/make_splits.py``
            writes them. A second column, if there is one, must be the label. Default: None.
        per_class: Samples of each class, an integer >= 1. Default: None. Exactly one of the two is given.
        skip: With ``per_class``: samples of each class that are passed over first, an integer >= 0. Subsets of one seed
            whose ranges of places do not meet have no sample in common: ``per_class=1000`` to learn from, and
            ``per_class=500, skip=1000`` to choose settings on. Default: 0.
        seed: Of the random choice, an integer >= 0. It is not ``randomness.seed``, so that runs with several seeds can
            learn from the same samples; published protocols change both together. Default: 0.
        lazy_init: Whether to leave reading the data to ``full_init``. Default: False.

    Raises:
        FileNotFoundError: There is no such list.
        TypeError: ``dataset`` is made of several.
        ValueError: Both or none of ``ann_file`` and ``per_class``; a class has too few samples; a listed sample does
            not exist, is listed twice, or has another label.
    """

    def __init__(self,
                 dataset: Any,
                 ann_file: str | os.PathLike | None = None,
                 per_class: int | None = None,
                 seed: int = 0,
                 skip: int = 0,
                 lazy_init: bool = False) -> None:
        if (ann_file is None) == (per_class is None):
            raise ValueError('mmssl.LabeledSubset: give `ann_file` (a list) or `per_class` (a number), got '
                             f'ann_file={ann_file!r}, per_class={per_class!r}')
        for name, value, smallest in (('per_class', per_class, 1), ('seed', seed, 0), ('skip', skip, 0)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < smallest):
                raise ValueError(f'mmssl.LabeledSubset: `{name}` must be an integer >= {smallest}, got {value!r}')
        if skip and per_class is None:
            raise ValueError(f'mmssl.LabeledSubset: `skip`={skip} belongs to `per_class`, and there is none')
        self.ann_file = ann_file
        self.per_class = per_class
        self.seed = seed
        self.skip = skip
        super().__init__(dataset, self._chosen, lazy_init=lazy_init)

    def _chosen(self, whole: BaseDataset) -> list[int]:
        """Increasing indices of the labeled samples."""
        if 'gt_label' not in whole.get_data_info(0):
            raise ValueError(f'mmssl.LabeledSubset: {type(whole).__name__} states no `gt_label`; its samples have '
                             f'{sorted(whole.get_data_info(0))}')
        # Not the images, which some data sets hold themselves.
        infos = [{key: info[key] for key in ('gt_label', 'img_path') if key in info}
                 for info in map(whole.get_data_info, range(len(whole)))]
        labels = np.array([int(info['gt_label']) for info in infos], np.int64)
        if self.ann_file is not None:
            return self._listed(whole, infos, labels)
        classes = whole.metainfo.get('classes')
        count = len(classes) if classes else int(labels.max(initial=-1)) + 1
        return sorted(per_class_indices(labels, count, self.per_class or 0, self.seed, classes, self.skip))

    def _listed(self, whole: BaseDataset, infos: list[dict], labels: np.ndarray) -> list[int]:
        """Indices of what ``ann_file`` names."""
        owner = f'mmssl.LabeledSubset: `ann_file`={os.fspath(self.ann_file)!r}'
        places: dict[str, list[int]] = {}
        for index, name in enumerate(sample_ids(whole, infos)):
            places.setdefault(name, []).append(index)
        found: dict[int, str] = {}
        entries = read_split_list(self.ann_file, IMAGE_SUFFIXES, 'mmssl.LabeledSubset: `ann_file`', label_files=False)
        for entry in entries:
            indices = places.get(strip_suffix(entry.image, IMAGE_SUFFIXES), [])
            if len(indices) != 1:
                what = 'is no sample of' if not indices else 'is the name of several samples of'
                raise ValueError(f'{owner}, line {entry.line}: {entry.image!r} {what} {type(whole).__name__}, whose '
                                 f'{len(infos)} samples are called {", ".join(list(places)[:3])}, ...')
            index = indices[0]
            if index in found:
                raise ValueError(f'{owner}, line {entry.line}: {entry.image!r} is listed twice')
            if entry.label is not None and entry.label != str(labels[index]):
                raise ValueError(f'{owner}, line {entry.line}: {entry.image!r} has label {entry.label}, but the data '
                                 f'set says {labels[index]}')
            found[index] = entry.image
        return sorted(found)


def per_class_indices(labels: np.ndarray,
                      num_classes: int,
                      per_class: int,
                      seed: int,
                      classes: Any = None,
                      skip: int = 0) -> list[int]:
    """Indices of ``per_class`` samples of each class, class after class, as USB draws them.

    Args:
        labels: Class of each sample, int, shape (N,).
        num_classes: Classes.
        per_class: Samples of each, >= 1.
        seed: >= 0.
        classes: Names for the message. Default: None.
        skip: Samples of each class that are passed over first, >= 0. Default: 0.

    Returns:
        ``num_classes * per_class`` indices.

    Raises:
        ValueError: A class has too few samples, or a label is outside the classes.
    """
    if len(labels) and not 0 <= labels.min() <= labels.max() < num_classes:
        raise ValueError(f'mmssl.LabeledSubset: labels go from {labels.min()} to {labels.max()}; with {num_classes} '
                         f'classes, 0 to {num_classes - 1} are allowed')
    random = np.random.RandomState(seed)
    chosen: list[int] = []
    for label in range(num_classes):
        indices = np.flatnonzero(labels == label)
        if len(indices) < skip + per_class:
            name = f' ({classes[label]!r})' if classes else ''
            asked = f'`per_class`={per_class}' + (f' after `skip`={skip}' if skip else '')
            raise ValueError(f'mmssl.LabeledSubset: {asked}, but class {label}{name} has only '
                             f'{len(indices)} samples')
        random.shuffle(indices)
        chosen += indices[skip:skip + per_class].tolist()
    return chosen


def sample_ids(dataset: BaseDataset, infos: list[dict]) -> list[str]:
    """A stable name for each sample: its image path below the folder of the images, without suffix, or its index.

    Args:
        dataset: The data set.
        infos: What it knows about each sample.

    Returns:
        Ids with ``/`` on every system.
    """
    prefix = getattr(dataset, 'data_prefix', None) or {}
    root = os.fspath(prefix.get('img_path') or getattr(dataset, 'data_root', None) or '')
    ids = []
    for index, info in enumerate(infos):
        path = info.get('img_path')
        if path is None:
            ids.append(str(index))
            continue
        name = os.path.relpath(path, root or '.') if '://' not in path else path.removeprefix(root).lstrip('/')
        ids.append(strip_suffix(name, IMAGE_SUFFIXES).replace(os.sep, '/'))
    return ids
