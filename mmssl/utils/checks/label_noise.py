"""Reports label noise, candidate sets and long tails: rates, wrong labels of each class, sizes, imbalance."""

from typing import Any

import numpy as np
from mmengine.registry import DATASETS

from mmssl.datasets.subset import Subset

from .nodes import get, type_name, walk, without_pipelines
from .report import Report
from .sources import Source

LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')
# More classes than this are summed up.
MAX_CLASSES = 20


def check_label_noise(cfg: Any, report: Report) -> None:
    """Build every `mmssl.NoisyLabelDataset` and `mmssl.PartialLabelDataset`; the caller has set the default scope.

    Args:
        cfg: An mmengine `Config`.
        report: Receives an error for each that cannot be built, and facts about the others.
    """
    for loader in LOADERS:
        for key, node in walk(get(cfg, f'{loader}.dataset'), f'{loader}.dataset'):
            facts_of = FACTS.get(type_name(node))
            if facts_of is None:
                continue
            if loader != 'train_dataloader' and type_name(node) == 'NoisyLabelDataset':
                report.warn(key, 'the labels that the model is evaluated by are made wrong')
            if report.errors_below(f'{key}.dataset'):
                continue  # it cannot be built without what it is around
            try:
                dataset = DATASETS.build(without_pipelines(node))
                dataset.full_init()
            except Exception as error:
                kind = FileNotFoundError if isinstance(error, FileNotFoundError) else ValueError
                report.error(key, str(error.args[0] if error.args else error), kind)
                continue
            report.facts.extend(f'{key}: {line}' for line in facts_of(dataset))


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


def candidate_facts(dataset: Any) -> list[str]:
    """What is worth knowing of a :class:`mmssl.datasets.PartialLabelDataset`, one line each."""
    sizes = dataset.candidates.sum(axis=1)
    lines = [f'{len(sizes)} candidate sets of {sizes.min()} to {sizes.max()} labels, {dataset.mean_size:.3f} on '
             f'average; {(sizes == 1).mean():.2%} have one']
    if dataset.ambiguity is None:
        return lines
    note = ': a false label is a candidate wherever its class is, and nothing tells the two apart'
    lines.append(f'ambiguity degree {dataset.ambiguity:.3f}' + (note if dataset.ambiguity == 1 else ''))
    lacking = int((~dataset.candidates[np.arange(len(sizes)), dataset.true_labels]).sum())
    if lacking:
        lines.append(f'{lacking} sets lack the true label ({lacking / len(sizes):.2%})')
    return lines


FACTS = {'NoisyLabelDataset': noise_facts, 'PartialLabelDataset': candidate_facts}


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
