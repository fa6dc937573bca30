"""Checks the labels of classification: outside the classes, missing, too few; which files a data set really reads."""

from collections import Counter
from typing import Any

import numpy as np

from .labels import evenly
from .nodes import find_heads
from .report import Report
from .sources import Leaf, Source

# More classes than this are summed up.
SHOWN = 20


def is_classification(cfg: Any) -> bool:
    """Whether every head of the model classifies whole images."""
    keys = [key for key, _ in find_heads(cfg.get('model'))]
    return bool(keys) and all(key.endswith('.head') for key in keys)


def check_class_labels(cfg: Any, named: list[tuple[str, Source, int | None]], report: Report) -> None:
    """Look at the labels that the data sets of a classifier state.

    Args:
        cfg: An mmengine `Config`.
        named: Name, source and number of files that the other checks read, as a sign of how much is wanted: labels come
            with the lists, so a hundred times as many are looked at.
        report: Receives errors, warnings, and the number of labels of each class.
    """
    if not is_classification(cfg):
        return
    for name, source, limit in named:
        for leaf in source.leaves:
            check_files_of_mnist(leaf, report)
        evaluates = source.key.split('.')[0] != 'train_dataloader'
        if source.complete and (source.is_labeled or evaluates):
            _check_source(source, name, None if limit is None else 100 * limit, report)


def check_files_of_mnist(leaf: Leaf, report: Report) -> None:
    """Mmpretrain's MNIST reads its test files for `test_mode=True`, not for `split='test'`."""
    kinds = {kind.__name__ for kind in type(getattr(leaf.dataset, 'whole', leaf.dataset)).__mro__}
    split, test_mode = leaf.config.get('split', 'train'), bool(leaf.config.get('test_mode', False))
    if 'MNIST' in kinds and (split == 'test') != test_mode:
        found = 'test' if test_mode else 'training'
        report.error(
            f'{leaf.key}.test_mode',
            f'is {test_mode}, so the {found} images are read, though split is {split!r}: mmpretrain goes by '
            f'`test_mode` alone; write test_mode={split == "test"}',
        )


def _check_source(source: Source, name: str, limit: int | None, report: Report) -> None:
    """Labels of one data set."""
    counts: Counter[int] = Counter()
    complete, classes = True, None
    for leaf in source.leaves:
        classes = classes or leaf.classes
        # The few labeled samples all count; of thousands a part tells enough at the start of a training.
        indices = evenly(len(leaf.dataset), limit)
        complete = complete and len(indices) == len(leaf.dataset)
        wrong, absent = [], []
        for index in indices:
            label = leaf.info(index).get('gt_label')
            if label is None:
                absent.append(index)
                continue
            labels = np.atleast_1d(np.asarray(label))
            if not np.issubdtype(labels.dtype, np.integer):
                return  # Soft or other labels, which are not ours to judge.
            counts.update(labels.tolist())
            if leaf.classes is not None and not 0 <= labels.min() <= labels.max() < len(leaf.classes):
                wrong.append((index, int(labels.min()), int(labels.max())))
        if absent:
            report.error(
                leaf.key,
                f'{len(absent)} of {len(indices)} samples have no label (`gt_label`), such as '
                f'{_sample(leaf, absent[0])}; the supervised loss and the metric need one',
            )
        if wrong:
            index, low, high = wrong[0]
            found = low if low < 0 else high
            report.error(
                leaf.key,
                f'{len(wrong)} of {len(indices)} samples have a label outside the {len(leaf.classes or [])} classes, 0 '
                f'to {len(leaf.classes or []) - 1}, such as {_sample(leaf, index)} with {found}',
            )
    if not counts or not complete:
        return
    report.facts.append(f'labels of {name}: {describe_counts(counts, classes)}')
    missing = [classes[label] for label in range(len(classes)) if not counts[label]] if classes else []
    if missing:
        report.warn(source.key, f'{len(missing)} of {len(classes or [])} classes have no image: {missing[:10]}')


def describe_counts(counts: Counter[int], classes: list[str] | None) -> str:
    """How many labels there are, and of which class.

    Examples:
        >>> describe_counts(Counter({0: 4, 1: 4}), ['cat', 'dog'])
        '8, 4 of each of 2 classes'
        >>> describe_counts(Counter({0: 4, 1: 1}), ['cat', 'dog'])
        '5; cat 4, dog 1'
    """
    labels = range(len(classes)) if classes else sorted(counts)
    total, each = sum(counts.values()), [counts[label] for label in labels]
    if len(set(each)) == 1:
        return f'{total}, {each[0]} of each of {len(each)} classes'
    if len(each) > SHOWN:
        return f'{total}, {min(each)} to {max(each)} of each of {len(each)} classes'
    names = classes or [str(label) for label in labels]
    return f'{total}; ' + ', '.join(f'{name} {count}' for name, count in zip(names, each, strict=True))


def _sample(leaf: Leaf, index: int) -> str:
    """Path or number of a sample."""
    info = leaf.info(index)
    return str(info.get('img_path', f'number {info.get("sample_idx", index)}'))
