"""Some samples of a data set, which keep the numbers that they have in all of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from mmengine.dataset import BaseDataset
from mmengine.registry import DATASETS as MMENGINE_DATASETS


class Subset:
    """Part of a plain data set. A sample's ``sample_idx`` stays its index in the whole one.

    That is what tables keyed by sample need (FlexMatch, partial labels): the number of a sample does not depend on
    which part of the data is used. The samples that are left out are not kept in memory.

    Args:
        dataset: An mmengine ``BaseDataset``, or the config of one. It is changed: it holds the part afterwards.
        choose: Function that gets the data set in full and returns the indices of the part, increasing.
        lazy_init: Whether to leave reading the data to :meth:`full_init`. Default: False.

    Raises:
        TypeError: ``dataset`` is no plain data set, such as one made of several.
    """

    def __init__(self, dataset: Any, choose: Callable[[BaseDataset], Sequence[int]], lazy_init: bool = False) -> None:
        # Most data sets read everything when they are built; then all of it would be serialized, only to be cut.
        self._serialize = False
        if isinstance(dataset, Mapping):
            dataset = MMENGINE_DATASETS.build({**dataset, 'lazy_init': True})
            self._serialize = getattr(dataset, 'serialize_data', False)
            dataset.serialize_data = False
        if not isinstance(dataset, BaseDataset):
            raise TypeError(f'mmssl.{type(self).__name__}: `dataset` must be a plain data set (an mmengine '
                            f'BaseDataset), got {type(dataset).__name__}; take parts of its parts')
        # Not `dataset`: what looks for the data sets inside wrappers would find more than this one holds.
        self.whole = dataset
        self.full_length = 0
        self.indices: list[int] = []
        self._choose = choose
        self._fully_initialized = False
        if not lazy_init:
            self.full_init()

    def full_init(self) -> None:
        """Read the data and keep the part."""
        if self._fully_initialized:
            return
        self.whole.full_init()
        self.full_length = len(self.whole)
        self.indices = [int(index) for index in self._choose(self.whole)]
        self.whole.get_subset_(self.indices)
        if self._serialize:
            # One array instead of many objects: workers of a data loader share its memory.
            self.whole.data_bytes, self.whole.data_address = self.whole._serialize_data()
            self.whole.serialize_data = True
        self._fully_initialized = True

    def keep(self, places: Sequence[int]) -> None:
        """Keep a part of this part.

        Args:
            places: Indices among the samples that it has, increasing.
        """
        self.full_init()
        self.whole.get_subset_(list(places))
        self.indices = [self.indices[place] for place in places]

    @property
    def metainfo(self) -> dict:
        """Meta information of the data set."""
        return self.whole.metainfo

    @property
    def pipeline(self) -> Any:
        """Pipeline of the data set."""
        return self.whole.pipeline

    def get_data_info(self, idx: int) -> dict:
        """What the data set knows about one sample, with its index in the whole data set as ``sample_idx``."""
        self.full_init()
        return {**self.whole.get_data_info(idx), 'sample_idx': self.indices[idx]}

    def get_cat_ids(self, idx: int) -> list[int]:
        """Classes of one sample (mmengine's ``ClassBalancedDataset`` asks)."""
        self.full_init()
        return self.whole.get_cat_ids(idx)

    def __getitem__(self, idx: int) -> Any:
        self.full_init()
        return renumbered(self.whole[idx], lambda number: self.indices[number])

    def __len__(self) -> int:
        self.full_init()
        return len(self.indices)


def renumbered(item: Any, change: Callable[[int], int]) -> Any:
    """A sample after its pipeline, with another ``sample_idx``.

    Args:
        item: Dict with ``data_samples`` (one sample, or a dict of them by branch, ``None`` where there is none), or
            with ``sample_idx`` itself; anything else passes. Changed in place.
        change: From the old to the new index.

    Returns:
        ``item``.
    """
    if not isinstance(item, dict):
        return item
    if 'sample_idx' in item:
        item['sample_idx'] = change(item['sample_idx'])
    samples = item.get('data_samples')
    for sample in samples.values() if isinstance(samples, Mapping) else [samples]:
        metainfo = getattr(sample, 'metainfo', {})
        if 'sample_idx' in metainfo:
            sample.set_metainfo({'sample_idx': change(metainfo['sample_idx'])})
    return item


def full_length(dataset: Any) -> int:
    """Samples that a data set numbers with ``sample_idx``: those left out by :class:`Subset` count, repeats do not."""
    if isinstance(dataset, Subset):
        dataset.full_init()
        return dataset.full_length
    if hasattr(dataset, 'datasets'):
        return sum(full_length(part) for part in dataset.datasets)
    return full_length(dataset.dataset) if hasattr(dataset, 'dataset') else len(dataset)


def numbering_offset(dataset: Any, idx: int) -> int:
    """What has to be added to the ``sample_idx`` of item ``idx`` to make it the index in the whole of ``dataset``.

    Each part of a ``ConcatDataset`` numbers its samples from 0, so two of them would share a number.

    Args:
        dataset: A data set, possibly made of several, possibly repeated.
        idx: Index of the item, in [0, len).

    Returns:
        Samples in the parts before the item's.
    """
    if hasattr(dataset, 'datasets'):
        number = int(np.searchsorted(dataset.cumulative_sizes, idx, side='right'))
        before = dataset.datasets[:number]
        inside = idx - (dataset.cumulative_sizes[number - 1] if number else 0)
        return sum(map(full_length, before)) + numbering_offset(dataset.datasets[number], inside)
    if hasattr(dataset, 'dataset'):
        return numbering_offset(dataset.dataset, idx % len(dataset.dataset))
    return 0


def without(dataset: Any, left_out: Iterable[int]) -> Subset:
    """A data set without the samples of the given indices."""
    gone = set(left_out)
    return Subset(dataset, lambda whole: [index for index in range(len(whole)) if index not in gone])
