"""A data set whose samples have sets of candidate labels in place of labels."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from mmengine.registry import DATASETS as MMENGINE_DATASETS
from mmengine.structures import BaseDataElement

from mmssl.functional.candidates import ambiguity_degree, held_out_samples
from mmssl.registry import DATASETS
from mmssl.utils.candidate_file import read_candidate_file
from mmssl.utils.values import check_choice, check_number

from .subset import Subset
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

    A part can be held out, to choose a checkpoint by its candidate sets (``mmssl.CoveringRate``): with one file, one
    ``held_out`` and one ``seed``, ``part='train'`` and ``part='held_out'`` together are the data set. No label decides
    what is held out.

    Args:
        dataset: The data set, or its config.
        candidate_file: One set for each sample of it, as ``tools/datasets/make_candidates.py`` writes it, or any text
            file with the labels of a sample on its line, separated by spaces. ``{seed}`` in the name stands for
            ``seed``.
        noisy: Whether sets may lack the true label (noisy partial labels). Default: False, an error where the truth is
            known.
        has_truth: Whether the data set's own labels are the truth; ``False`` for one that has none. Default: True.
        held_out: Share of the samples that is held out, in [0, 1). Default: 0.
        part: ``'train'``, what is not held out, or ``'held_out'``. Default: ``'train'``.
        seed: Of the choice of what is held out, and of the file's name. It is not ``randomness.seed``. Default: 0.
        lazy_init: Whether to leave reading the data to ``full_init``. Default: False.

    Attributes:
        indices: What this part has of ``dataset``, increasing.
        candidates: Bool, (N, C).
        true_labels: Int64, (N,), or None.

    Raises:
        FileNotFoundError: There is no such file.
        TypeError: ``dataset`` is made of several.
        ValueError: A file of another data set (length, classes, hash), an empty set, a label outside the classes, a
            set without the truth, or a part without a sample.
    """

    def __init__(self,
                 dataset: Any,
                 candidate_file: str | os.PathLike,
                 noisy: bool = False,
                 has_truth: bool = True,
                 held_out: float = 0.0,
                 part: str = 'train',
                 seed: int = 0,
                 lazy_init: bool = False) -> None:
        check_number(held_out, f'{OWNER}: `held_out`', lambda share: 0 <= share < 1, 'in [0, 1)')
        check_choice(part, ('train', 'held_out'), f'{OWNER}: `part`')
        check_number(seed, f'{OWNER}: `seed`', lambda number: number >= 0, 'an integer >= 0', int)
        if part == 'held_out' and not held_out:
            raise ValueError(f"{OWNER}: part='held_out' needs `held_out`, the share that is held out, above 0")
        self.candidate_file = os.fspath(candidate_file).replace('{seed}', str(seed))
        self.noisy, self.has_truth = noisy, has_truth
        self.held_out, self.part, self.seed = held_out, part, seed
        self.indices: list[int] = []
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
        self.indices = list(range(len(self.dataset)))
        if self.held_out:
            self._keep_part()
        self._fully_initialized = True

    def _keep_part(self) -> None:
        chosen = set(held_out_samples(len(self.indices), self.held_out, self.seed))
        self.indices = [index for index in self.indices if (index in chosen) == (self.part == 'held_out')]
        if not self.indices:
            raise ValueError(f'{OWNER}: held_out={self.held_out} of {len(self.candidates)} samples leaves no sample in '
                             f'part={self.part!r}')
        if isinstance(self.dataset, Subset):
            self.dataset.keep(self.indices)
        else:
            self.dataset = Subset(self.dataset, lambda whole: self.indices)
        self.candidates = self.candidates[self.indices]
        if self.true_labels is not None:
            self.true_labels = self.true_labels[self.indices]

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
