"""What wrappers of a data set for classification share: its labels, its fitness, and notes on its samples."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from mmengine.structures import BaseDataElement


def add_metainfo(item: Any, **metainfo: Any) -> None:
    """Add to the meta information of every data sample in what a pipeline returned, branches included."""
    if isinstance(item, BaseDataElement):
        item.set_metainfo(metainfo)
    elif isinstance(item, Mapping):
        for value in item.values():
            add_metainfo(value, **metainfo)
    elif isinstance(item, list | tuple):
        for value in item:
            add_metainfo(value, **metainfo)


def check_holds_samples(dataset: Any, owner: str) -> None:
    """Refuse wrappers around several or repeated data sets.

    Raises:
        TypeError: ``dataset`` does not hold samples itself.
    """
    needed = ('full_init', 'get_data_info', 'pipeline', 'metainfo')
    if hasattr(dataset, 'dataset') or hasattr(dataset, 'datasets') or not all(hasattr(dataset, n) for n in needed):
        raise TypeError(f'{owner}: `dataset` must be a data set that holds samples itself, got '
                        f'{type(dataset).__name__}; put {owner} inside of wrappers, around each of their data sets')


def true_labels(dataset: Any, owner: str) -> tuple[list[int], int]:
    """Label of each sample, and number of classes.

    Args:
        dataset: A data set for classification that holds samples itself.
        owner: Who asks, for messages.

    Raises:
        ValueError: There is no sample, a sample has no label or several, or a label is outside the classes.
    """
    labels = []
    for index in range(len(dataset)):
        info = dataset.get_data_info(index)
        label = info.get('gt_label')
        if isinstance(label, bool) or np.ndim(label) != 0 or not np.issubdtype(np.asarray(label).dtype, np.integer):
            raise ValueError(f'{owner}: sample {index} of {type(dataset).__name__} must have one label (an integer '
                             f'`gt_label`), got {label!r}')
        labels.append(int(label))
    if not labels:
        raise ValueError(f'{owner}: {type(dataset).__name__} has no sample')
    classes = dataset.metainfo.get('classes')
    num_classes = len(classes) if classes else max(labels) + 1
    if min(labels) < 0 or max(labels) >= num_classes:
        raise ValueError(f'{owner}: the labels of {type(dataset).__name__} go from {min(labels)} to {max(labels)}; '
                         f'with {num_classes} classes, 0 to {num_classes - 1} are allowed')
    return labels, num_classes
