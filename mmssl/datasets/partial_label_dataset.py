"""A data set whose samples have sets of candidate labels in place of labels."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from mmengine.registry import DATASETS as MMENGINE_DATASETS
from mmengine.structures import BaseDataElement

from mmssl.functional.candidates import ambiguity_degree
from mmssl.registry import DATASETS
from mmssl.utils.candidate_file import read_candidate_file

from .wrapping import check_holds_samples, true_labels

OWNER = 'mmssl.PartialLabelDataset'


@DATASETS.register_module()
class PartialLabelDataset:
    """Gives each sample of any mmpretrain data set its candidate set, and takes its label away.

    Every data sample, in every branch of a pipeline with branches, gets the field ``candidates``, bool, (C,). There is
    no ``gt_label``, so nothing learns from it by mistake; the true label, where the data set has it, is ``true_label``
    in the meta information, for analysis. ``sample_idx`` stays the index in the data set: tables of targets are keyed
    by it.

    It goes directly around the data set that holds the samples (or around ``mmssl.LabeledSubset``): wrappers that
    repeat, join or balance go around it.

    Args:
        dataset: The data set, or its config.
        candidate_file: One set for each sample, as ``tools/datasets/make_candidates.py`` writes it, or any text file
            with the labels of a sample on its line, separated by spaces.
        noisy: Whether sets may lack the true label (noisy partial labels). Default: False, an error where the truth is
            known.
        has_truth: Whether the data set's own labels are the truth; ``False`` for one that has none. Default: True.
        lazy_init: Whether to leave reading the data to ``full_init``. Default: False.

    Attributes:
        candidates: Bool, (N, C).
        true_labels: Int64, (N,), or None.

    Raises:
        FileNotFoundError: There is no such file.
        TypeError: ``dataset`` is made of several.
        ValueError: A file of another data set (length, classes, hash), an empty set, a label outside the classes, or a
            set without the truth.
    """

    def __init__(self,
                 dataset: Any,
                 candidate_file: str | os.PathLike,
                 noisy: bool = False,
                 has_truth: bool = True,
                 lazy_init: bool = False) -> None:
        self.candidate_file, self.noisy, self.has_truth = candidate_file, noisy, has_truth
        if isinstance(dataset, Mapping):
            dataset = MMENGINE_DATASETS.build({**dataset, 'lazy_init': True})
        check_holds_samples(dataset, OWNER)
        self.dataset = dataset
        self.candidates = np.zeros((0, 0), bool)
        self.true_labels: np.ndarray | None = None
        self._fully_initialized = False
        if not lazy_init:
            self.full_init()

    def full_init(self) -> None:
        """Read the data and the candidate sets."""
        if self._fully_initialized:
            return
        self.dataset.full_init()
        if self.has_truth:
            true, num_classes = true_labels(self.dataset, OWNER)
        else:
            true, num_classes = None, len(self.metainfo.get('classes') or ())
        if num_classes < 2:
            raise ValueError(f'{OWNER}: the data set must name its classes (two or more) in metainfo.classes, got '
                             f'{self.metainfo.get("classes")!r}')
        file = read_candidate_file(self.candidate_file, f'{OWNER}: `candidate_file`')
        self.candidates = file.mask(true, num_classes, len(self.dataset), f'{OWNER}: `candidate_file`', self.noisy)
        self.true_labels = None if true is None else np.array(true, np.int64)
        self._fully_initialized = True

    @property
    def metainfo(self) -> dict:
        """Meta information of the data set."""
        return self.dataset.metainfo

    @property
    def pipeline(self) -> Any:
        """Pipeline of the data set."""
        return self.dataset.pipeline

    @property
    def CLASSES(self) -> Any:
        """Class names, where mmpretrain looks for them."""
        return self.metainfo.get('classes')

    @property
    def mean_size(self) -> float:
        """Mean number of candidates."""
        self.full_init()
        return float(self.candidates.sum(axis=1).mean())

    @property
    def ambiguity(self) -> float | None:
        """Largest share of a class that has one and the same false candidate; None without the truth."""
        self.full_init()
        return None if self.true_labels is None else ambiguity_degree(self.candidates, self.true_labels)

    def get_data_info(self, idx: int) -> dict:
        """What the data set knows about one sample, with ``candidates`` (int64) in place of its label."""
        self.full_init()
        info = dict(self.dataset.get_data_info(idx))
        info.pop('gt_label', None)
        info['candidates'] = np.flatnonzero(self.candidates[idx])
        if self.true_labels is not None:
            info['true_label'] = int(self.true_labels[idx])
        return info

    def __getitem__(self, idx: int) -> Any:
        idx = range(len(self))[int(idx)]
        item = self.pipeline(self.get_data_info(idx))
        true = None if self.true_labels is None else int(self.true_labels[idx])
        _label_samples(item, torch.from_numpy(self.candidates[idx].copy()), true)
        return item

    def __len__(self) -> int:
        return len(self.dataset)


def _label_samples(item: Any, candidates: torch.Tensor, true: int | None) -> None:
    """Give every data sample in what a pipeline returned its candidates, and the truth as a note."""
    if isinstance(item, BaseDataElement):
        item.set_field(candidates, 'candidates')
        if true is not None:
            item.set_metainfo(dict(true_label=true))
    elif isinstance(item, Mapping):
        for value in item.values():
            _label_samples(value, candidates, true)
    elif isinstance(item, list | tuple):
        for value in item:
            _label_samples(value, candidates, true)
