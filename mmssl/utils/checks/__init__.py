"""Looks at a config and its data before training, and says which key is wrong, what was found and what is allowed."""

import os
from collections.abc import Mapping
from typing import Any

from .class_labels import check_class_labels
from .hooks import check_required_hooks
from .known_types import check_types
from .label_noise import check_imbalance, check_label_noise
from .labels import Progress, _no_progress, check_images, check_labels
from .memory import estimate_memory
from .nodes import find_preprocessor, get, is_sequence
from .report import Finding, ImageSizes, LabelHistogram, Report, SourceSummary
from .settings import (
    check_batch,
    check_branches,
    check_crop_size,
    check_heads,
    check_ignore_index,
    check_labels_loaded,
    check_loop,
    check_names,
    check_numbers,
    check_scope,
    check_semi_options,
    check_unsup_begin,
    summarize_sources,
)
from .sources import (
    Source,
    build_sources,
    check_overlap,
    check_same_content,
    config_scope,
    leave_out_labeled,
    name_variables,
)

__all__ = [
    'Finding',
    'ImageSizes',
    'LabelHistogram',
    'Report',
    'SourceSummary',
    'estimate_memory',
    'full_check',
    'quick_check',
]


def quick_check(cfg: Any, max_files: int = 16, world_size: int | None = None) -> Report:
    """Check a config, its lists and a sample of its label files; a matter of a second.

    Args:
        cfg: An mmengine `Config`.
        max_files: Label files and images read per training source; half as many for validation.
        world_size: Number of processes; None reads the environment variable `WORLD_SIZE`.

    Returns:
        The report, with warnings only, which the caller shows.

    Raises:
        FileNotFoundError: If the first error is a missing file or folder; the message lists all errors.
        ValueError: If it is any other.
    """
    report = _check(cfg, max_files, world_size, _no_progress, full=False)
    report.raise_errors()
    return report


def full_check(
    cfg: Any,
    max_files: int | None = None,
    world_size: int | None = None,
    progress: Progress = _no_progress,
    memory: bool = True,
) -> Report:
    """Check a config and every file of its data; errors are reported, not raised.

    Args:
        cfg: An mmengine `Config`.
        max_files: Read at most so many files of each data set, spread evenly; None reads all.
        world_size: Number of processes; None reads the environment variable `WORLD_SIZE`.
        progress: Called with (indices, title), returns the indices to go through.
        memory: Whether to build the model and estimate the memory of training.
    """
    report = _check(cfg, max_files, world_size, progress, full=True)
    if memory and cfg.get('model') is not None:
        with config_scope(cfg):
            report.memory = estimate_memory(cfg, report)
    return report


def _check(cfg: Any, max_files: int | None, world_size: int | None, progress: Progress, full: bool) -> Report:
    report = Report()
    world_size = world_size or int(os.environ.get('WORLD_SIZE', 1))
    check_scope(cfg, report)
    check_names(cfg, report)
    check_numbers(cfg, report)
    loader = cfg.get('train_dataloader')
    if not isinstance(loader, Mapping) or not isinstance(get(loader, 'dataset'), Mapping):
        report.error('train_dataloader.dataset', 'is missing: there is nothing to train on')
        return report
    with config_scope(cfg):
        if not any(finding.key == 'default_scope' for finding in report.errors):
            check_types(cfg, report)
        train = build_sources(loader, 'train_dataloader', report)
        leave_out_labeled(train, get(loader, 'dataset'), report)
        others = _evaluation_sources(cfg, report)
        check_label_noise(cfg, report)
        check_imbalance(train, report)
        name_variables(cfg, report)
        per_gpu = check_batch(cfg, train, report)
        check_loop(cfg, report)
        check_branches(cfg, report)
        check_labels_loaded(cfg, train, report)
        check_semi_options(cfg, report)
        check_required_hooks(cfg, report)
        check_unsup_begin(cfg, train, per_gpu, world_size, report)
        report.sources = summarize_sources(cfg, train, per_gpu, world_size)
        classes, classes_key = _check_classes(train, others, report)
        check_heads(cfg, classes, classes_key, report)
        check_ignore_index(cfg, [*train, *(s for sources in others.values() for s in sources)], report)
        check_crop_size(cfg, train, report)
        paths = check_overlap(train, others, get(loader, 'dataset'), report)
        if full:
            check_same_content(paths, report)
        channels = channels_taken(cfg)
        named = _named(train, others, max_files, full)
        check_class_labels(cfg, named, report)
        for name, source, limit in named:
            check_images(source, name, limit, report, progress, full, channels)
            check_labels(source, name, limit, report, progress, full)
    return report


def _evaluation_sources(cfg: Any, report: Report) -> dict[str, list[Source]]:
    """Data sets of validation and test; the test data set is left out where it is the validation one."""
    found: dict[str, list[Source]] = {}
    seen: list[Any] = []
    for key in ('val_dataloader', 'test_dataloader'):
        dataset = get(cfg, f'{key}.dataset')
        if isinstance(dataset, Mapping) and dataset not in seen:
            seen.append(dataset)
            found[key] = build_sources(cfg[key], key, report)
    return found


def _named(
    train: list[Source], others: dict[str, list[Source]], max_files: int | None, full: bool
) -> list[tuple[str, Source, int | None]]:
    limit = max_files if full else max(1, (max_files or 2) // 2)
    named: list[tuple[str, Source, int | None]] = [(source.name, source, max_files) for source in train]
    return named + [(source.name, source, limit) for sources in others.values() for source in sources]


def channels_taken(cfg: Any) -> int | None:
    """Channels of the images that the data preprocessor normalizes; None if it does not."""
    found = find_preprocessor(cfg.get('model'))
    mean = None if found is None else found[1].get('mean')
    return len(mean) if is_sequence(mean) else None


def _check_classes(
    train: list[Source], others: dict[str, list[Source]], report: Report
) -> tuple[list[str] | None, str]:
    """The classes of the labeled training data, compared with those of the other data sets."""
    leaves = [leaf for source in train if source.is_labeled for leaf in source.leaves if leaf.classes is not None]
    if not leaves:
        return None, ''
    classes, key = leaves[0].classes, leaves[0].key
    report.facts.append(f'{key}: {len(classes)} classes')
    rest = [leaf for sources in others.values() for source in sources for leaf in source.leaves]
    for leaf in [*leaves[1:], *rest]:
        if leaf.classes is not None and leaf.classes != classes:
            report.error(
                f'{leaf.key}.metainfo.classes', f'are {leaf.classes}, but those of {key} are {classes}; make them equal'
            )
    return classes, key
