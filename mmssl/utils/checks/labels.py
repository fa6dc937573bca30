"""Reads label files as training will, and counts classes; looks at image headers."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from mmengine.registry import TRANSFORMS
from PIL import Image

from .report import ImageSizes, LabelHistogram, Report
from .sources import Leaf, Source

Progress = Callable[[Sequence[int], str], Iterable[int]]
MAX_EXAMPLES = 5


def evenly(total: int, count: int | None) -> list[int]:
    """At most `count` indices spread evenly over `range(total)`, first and last included; all for None."""
    if count is None or count >= total:
        return list(range(total))
    return sorted({round(i * (total - 1) / max(count - 1, 1)) for i in range(count)})


def _no_progress(indices: Sequence[int], _: str) -> Iterable[int]:
    return indices


class Problems:
    """Collects one kind of problem over many files, and reports it once with a few examples."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str, type[Exception]], list[str]] = {}

    def add(self, key: str, title: str, example: str, kind: type[Exception] = ValueError) -> None:
        """Note one file. `title` holds `{n}` for the number of files."""
        self.found.setdefault((key, title, kind), []).append(example)

    def report(self, report: Report) -> None:
        """Turn each kind of problem into an error."""
        for (key, title, kind), examples in self.found.items():
            more = f'; and {len(examples) - MAX_EXAMPLES} more' if len(examples) > MAX_EXAMPLES else ''
            shown = '; '.join(examples[:MAX_EXAMPLES])
            report.error(key, f'{title.format(n=len(examples))}: {shown}{more}', kind)


def check_labels(
    source: Source,
    name: str,
    max_files: int | None,
    report: Report,
    progress: Progress = _no_progress,
) -> LabelHistogram | None:
    """Read label files of one source through the `LoadAnnotations` of its own pipeline.

    Args:
        source: Its data sets.
        name: How the histogram is called.
        max_files: Read at most so many, spread evenly; None reads all.
        report: Receives the findings and the histogram.
        progress: Wraps the indices that are gone through.

    Returns:
        The histogram; None where there are no labels or no class names.
    """
    leaves = [leaf for leaf in source.leaves if leaf.has_labels and leaf.classes is not None]
    if not leaves:
        return None
    histogram = LabelHistogram(name, leaves[0].classes)
    num_classes = len(histogram.classes)
    pixels, images = np.zeros(num_classes, np.int64), np.zeros(num_classes, np.int64)
    problems = Problems()
    for leaf in leaves:
        loader = TRANSFORMS.build(deepcopy(leaf.annotation_loaders[0][1]))
        share = None if max_files is None else max(1, max_files * len(leaf.dataset) // max(source.length, 1))
        histogram.total_files += len(leaf.dataset)
        for index in progress(evenly(len(leaf.dataset), share), f'labels of {name}'):
            labels = _read_labels(leaf, index, loader, problems)
            if labels is None:
                continue
            histogram.files += 1
            values, counts = np.unique(labels, return_counts=True)
            ignored = values == leaf.ignore_index
            valid = (values >= 0) & (values < num_classes) & ~ignored
            pixels[values[valid]] += counts[valid]
            images[values[valid]] += 1
            histogram.ignored += int(counts[ignored].sum())
            wrong = ~valid & ~ignored
            if wrong.any():
                histogram.invalid += int(counts[wrong].sum())
                problems.add(
                    leaf.key,
                    '{n} label files hold values that are neither a class, 0 to '
                    f'{num_classes - 1} ({num_classes} classes), nor the ignored {leaf.ignore_index}',
                    f'{leaf.info(index).get("seg_map_path")} has {[int(v) for v in values[wrong][:8]]}'
                    + _hint(values, num_classes),
                )
    problems.report(report)
    histogram.pixels, histogram.images = pixels.tolist(), images.tolist()
    report.histograms.append(histogram)
    _warn_about_classes(source, histogram, report)
    return histogram


def _hint(values: np.ndarray, num_classes: int) -> str:
    if int(values.max()) == num_classes and 0 not in values:
        return ' (classes seem to start at 1: reduce_zero_label=True?)'
    if num_classes == 2 and set(values.tolist()) <= {0, 255}:
        return ' (a 0/255 mask: its 255 has to become 1)'
    return ''


def _warn_about_classes(source: Source, histogram: LabelHistogram, report: Report) -> None:
    """Warn about classes that never occur; a sample of the files can only tell that a single value occurs."""
    absent = [name for name, count in zip(histogram.classes, histogram.images, strict=True) if count == 0]
    if histogram.files == 0 or not absent:
        return
    if len(absent) >= len(histogram.classes) - 1 and len(histogram.classes) > 1:
        extra = ''
        if histogram.ignored:
            extra = f' and the ignored label ({histogram.ignored} pixels): is this a 0/255 mask?'
        present = [name for name in histogram.classes if name not in absent]
        report.warn(source.key, f'the {histogram.files} label files read hold no class but {present}{extra}')
    elif histogram.files == histogram.total_files:
        report.warn(source.key, f'{len(absent)} of {len(histogram.classes)} classes never occur: {absent}')


def _read_labels(leaf: Leaf, index: int, loader: Any, problems: Problems) -> np.ndarray | None:
    info = leaf.info(index)
    path = info.get('seg_map_path')
    if path is None:
        problems.add(
            leaf.key,
            '{n} samples have no label file although the pipeline loads labels (no data_prefix.seg_map_path?)',
            str(info.get('img_path')),
        )
        return None
    if leaf.is_local and not os.path.isfile(path):
        problems.add(leaf.key, '{n} label files do not exist', path, FileNotFoundError)
        return None
    try:
        labels = loader(deepcopy(info))['gt_seg_map']
    except Exception as error:
        problems.add(leaf.key, '{n} label files cannot be read', f'{path} ({type(error).__name__}: {error})')
        return None
    if labels.ndim != 2:
        problems.add(
            leaf.key,
            '{n} label files are no map of class indices but have several channels (colors?)',
            f'{path} has shape {labels.shape}',
        )
        return None
    if leaf.is_local:
        _compare_with_image(leaf, info, labels, problems)
    return labels


def _compare_with_image(leaf: Leaf, info: dict[str, Any], labels: np.ndarray, problems: Problems) -> None:
    """A label file must be as large as its image, and its values must survive the loader's 8 bits."""
    label_path, image_path = info['seg_map_path'], info.get('img_path')
    try:
        with Image.open(label_path) as image:
            if image.mode.startswith(('I', 'F')):
                largest = int(np.asarray(image).max())
                if largest > 255:
                    problems.add(
                        leaf.key,
                        '{n} label files need more than 8 bits, which loading cuts off',
                        f'{label_path} goes up to {largest}',
                    )
        if image_path is None or not os.path.isfile(image_path):
            return
        with Image.open(image_path) as image:
            width, height = image.size
    except OSError:
        return  # Not a format of PIL's, or a broken image, which the check of the images reports.
    if (height, width) != labels.shape:
        problems.add(
            leaf.key,
            '{n} label files are not as large as their images',
            f'{label_path} is {labels.shape[1]}x{labels.shape[0]}, {image_path} is {width}x{height}',
        )


def check_images(
    source: Source, name: str, max_files: int | None, report: Report, progress: Progress = _no_progress
) -> None:
    """Look at image headers: files that are missing or broken, and sizes."""
    sizes: Counter[tuple[int, int]] = Counter()
    problems = Problems()
    for leaf in source.leaves:
        if not leaf.is_local:
            continue
        share = None if max_files is None else max(1, max_files * len(leaf.dataset) // max(source.length, 1))
        for index in progress(evenly(len(leaf.dataset), share), f'images of {name}'):
            path = leaf.info(index).get('img_path')
            if path is None:
                continue
            if not os.path.isfile(path):
                problems.add(leaf.key, '{n} images do not exist', path, FileNotFoundError)
                continue
            try:
                with Image.open(path) as image:
                    sizes[image.size] += 1
            except OSError as error:
                problems.add(leaf.key, '{n} images cannot be read', f'{path} ({error})')
    problems.report(report)
    if sizes:
        widths, heights = [w for w, _ in sizes], [h for _, h in sizes]
        report.image_sizes.append(
            ImageSizes(
                name,
                sum(sizes.values()),
                [(w, h, n) for (w, h), n in sizes.most_common(3)],
                len(sizes),
                (min(widths), min(heights)),
                (max(widths), max(heights)),
            )
        )
