"""Reports label noise and long tails: the rate found, wrong labels of each class, imbalance of the classes."""

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
from mmengine.registry import DATASETS

from mmssl.datasets.subset import Subset

from .nodes import get, type_name, walk
from .report import Report
from .sources import Source

LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')
# More classes than this are summed up.
MAX_CLASSES = 20


def check_label_noise(cfg: Any, report: Report) -> None:
    """Build every `mmssl.NoisyLabelDataset` of a config; the caller has set its default scope.

    Args:
        cfg: An mmengine `Config`.
        report: Receives an error for each that cannot be built, and facts about the others.
    """
    for loader in LOADERS:
        for key, node in walk(get(cfg, f'{loader}.dataset'), f'{loader}.dataset'):
            if type_name(node) != 'NoisyLabelDataset':
                continue
            if loader != 'train_dataloader':
                report.warn(key, 'the labels that the model is evaluated by are made wrong')
            if report.errors_below(f'{key}.dataset'):
                continue  # it cannot be built without what it is around
            try:
                dataset = DATASETS.build(_without_pipeline(node))
                dataset.full_init()
            except Exception as error:
                kind = FileNotFoundError if isinstance(error, FileNotFoundError) else ValueError
                report.error(key, str(error.args[0] if error.args else error), kind)
                continue
            report.facts.extend(f'{key}: {line}' for line in noise_facts(dataset))


def noise_facts(dataset: Any) -> list[str]:
    """What is worth knowing of a :class:`mmssl.datasets.NoisyLabelDataset`, one line each."""
    counts = dataset.transitions
    total, wrong = int(counts.sum()), int(counts.sum() - counts.trace())
    lines = [f'{wrong} of {total} labels are wrong ({wrong / total:.2%})']
    classes = dataset.metainfo.get('classes') or range(len(counts))
    sizes, flips = counts.sum(axis=1), counts.sum(axis=1) - counts.diagonal()
    shares = flips / np.maximum(sizes, 1)
    if len(counts) <= MAX_CLASSES:
        for name, size, flip, row, label in zip(classes, sizes, flips, counts, range(len(counts)), strict=True):
            others = row * (np.arange(len(row)) != label)
            most = f', most often {classes[int(others.argmax())]} ({others.max()})' if flip else ''
            lines.append(f'  {name}: {flip} of {size} wrong{most}')
    else:
        lines.append(f'  wrong in a class: {shares.min():.2%} to {shares.max():.2%}')
    for title, found in (('true', sizes), ('noisy', counts.sum(axis=0))):
        lines.append(f'imbalance ratio of the {title} labels {imbalance(found)}')
    return lines


def imbalance(sizes: np.ndarray) -> str:
    """Size of the largest class over that of the smallest one, and both."""
    largest, smallest = int(sizes.max()), int(sizes.min())
    ratio = f'{largest / smallest:.2f}' if smallest else 'infinite'
    return f'{ratio}: {largest} to {smallest} samples a class'


def check_imbalance(sources: list[Source], report: Report) -> None:
    """State the class sizes of the parts of data sets among the sources, which a list may have made a long tail."""
    for leaf in (leaf for source in sources for leaf in source.leaves):
        if not isinstance(leaf.dataset, Subset) or leaf.classes is None:
            continue
        labels = [leaf.info(index).get('gt_label') for index in range(len(leaf.dataset))]
        if all(isinstance(label, int | np.integer) and 0 <= label < len(leaf.classes) for label in labels):
            sizes = np.bincount(labels, minlength=len(leaf.classes))
            report.facts.append(f'{leaf.key}: imbalance ratio {imbalance(sizes)}')


def _without_pipeline(node: Mapping[str, Any]) -> dict[str, Any]:
    """A data set's config without the pipelines of it and of those inside, so that only its labels are read."""
    node = copy.deepcopy(dict(node))
    for _, inner in list(walk(node, '')):
        if 'pipeline' in inner:
            inner['pipeline'] = []
    return node
