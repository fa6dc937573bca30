"""A data set with wrong labels: drawn at random by rule and seed, or read from a file."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from mmengine.registry import DATASETS as MMENGINE_DATASETS

from mmssl.functional.label_noise import transition_counts
from mmssl.registry import DATASETS
from mmssl.utils.label_file import read_label_file
from mmssl.utils.noise_rule import check_noise, make_noise

from .wrapping import add_metainfo, check_holds_samples, true_labels

OWNER = 'mmssl.NoisyLabelDataset'


@DATASETS.register_module()
class NoisyLabelDataset:
    """Replaces the labels of any mmpretrain data set by noisy ones; the true ones stay for analysis.

    Losses see ``gt_label``, the noisy label. The true one is ``true_label`` in the meta information of each data
    sample, in every branch of a pipeline with branches, and in ``true_labels``; nothing learns from it.

    It goes directly around the data set that holds the samples (or around ``mmssl.LabeledSubset``): wrappers that
    repeat, join or balance go around it. Labels depend on data set, rule and seed alone, thus are equal on all
    processes and after a resume.

    Args:
        dataset: The data set, or its config.
        noise_file: One label for each sample, as ``tools/datasets/make_noisy_labels.py`` writes it, or any text file
            with one label a line (the last column counts). Default: None.
        noise: Instead of a file, the rule: ``dict(kind='symmetric', rate=0.4, seed=123)`` or
            ``dict(kind='asymmetric', rate=0.4, seed=123, confusions='cifar10')``, where ``confusions`` is also
            ``'next'`` (class k is taken for k + 1, the last for the first) or a dict of class names or numbers; see
            :mod:`mmssl.functional.label_noise`. ``seed`` is 123 unless given, that of Wang et al. Default: None.
        lazy_init: Whether to leave reading the data to ``full_init``. Default: False.

    Attributes:
        labels: Noisy labels, int64, (N,).
        true_labels: True labels, int64, (N,).

    Raises:
        FileNotFoundError: There is no such file.
        KeyError: An unknown key in ``noise``.
        TypeError: ``dataset`` is made of several.
        ValueError: Both or none of ``noise_file`` and ``noise``; a wrong rate, kind or class; a file of another data
            set: of another length, with labels outside the classes, or made from other labels.
    """

    def __init__(self,
                 dataset: Any,
                 noise_file: str | os.PathLike | None = None,
                 noise: Mapping[str, Any] | None = None,
                 lazy_init: bool = False) -> None:
        if (noise_file is None) == (noise is None):
            raise ValueError(f'{OWNER}: give `noise_file` (a path) or `noise` (a rule), got noise_file={noise_file!r}, '
                             f'noise={noise!r}')
        self.noise_file = noise_file
        self.noise = None if noise is None else check_noise(noise, f'{OWNER}.noise')
        if isinstance(dataset, Mapping):
            dataset = MMENGINE_DATASETS.build({**dataset, 'lazy_init': True})
        check_holds_samples(dataset, OWNER)
        self.dataset = dataset
        self.labels = self.true_labels = np.zeros(0, np.int64)
        self._fully_initialized = False
        if not lazy_init:
            self.full_init()

    def full_init(self) -> None:
        """Read the data, and make or read the noisy labels."""
        if self._fully_initialized:
            return
        self.dataset.full_init()
        true, num_classes = true_labels(self.dataset, OWNER)
        if self.noise_file is not None:
            file = read_label_file(self.noise_file, f'{OWNER}: `noise_file`')
            file.check(true, num_classes, f'{OWNER}: `noise_file`')
            noisy = file.labels
        else:
            noisy = make_noise(true, num_classes, self.metainfo.get('classes'), self.noise or {}, f'{OWNER}.noise')
        self.true_labels, self.labels = np.array(true, np.int64), np.array(noisy, np.int64)
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
    def transitions(self) -> np.ndarray:
        """How many samples of each true class (row) have each label (column), int64, (C, C)."""
        self.full_init()
        return transition_counts(self.true_labels, self.labels, true_labels(self.dataset, OWNER)[1])

    @property
    def noise_rate(self) -> float:
        """Share of the labels that are wrong."""
        self.full_init()
        return float((self.labels != self.true_labels).mean())

    def get_data_info(self, idx: int) -> dict:
        """What the data set knows about one sample, with the noisy label as ``gt_label`` and also ``true_label``."""
        self.full_init()
        info = self.dataset.get_data_info(idx)
        return {**info, 'gt_label': int(self.labels[idx]), 'true_label': int(self.true_labels[idx])}

    def get_gt_labels(self) -> np.ndarray:
        """Noisy labels (mmpretrain's hooks ask)."""
        self.full_init()
        return self.labels.copy()

    def get_cat_ids(self, idx: int) -> list[int]:
        """Noisy class of one sample (mmengine's ``ClassBalancedDataset`` asks)."""
        self.full_init()
        return [int(self.labels[idx])]

    def __getitem__(self, idx: int) -> Any:
        idx = range(len(self))[int(idx)]
        item = self.pipeline(self.get_data_info(idx))
        add_metainfo(item, true_label=int(self.true_labels[idx]))
        return item

    def __len__(self) -> int:
        return len(self.dataset)
