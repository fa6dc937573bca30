"""Reads label files as training will, and counts classes; looks at images, or only at their headers."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from mmengine.registry import TRANSFORMS
from PIL import Image, UnidentifiedImageError

from mmssl.utils.image_paths import MEMORY

from .nodes import type_name
from .report import ImageSizes, LabelHistogram, Report
from .sources import Leaf, Source, is_known

Progress = Callable[[Sequence[int], str], Iterable[int]]
MAX_EXAMPLES = 5
# Of a photograph, where a camera was turned; loading turns the image accordingly.
ORIENTATION_TAG = 0x0112


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
        self.found: dict[tuple[str, str, type[Exception] | None], list[str]] = {}

    def add(self, key: str, title: str, example: str, kind: type[Exception] | None = ValueError) -> None:
        """Note one file. `title` holds `{n}` for the number of files; a `kind` of None makes it a warning."""
        self.found.setdefault((key, title, kind), []).append(example)

    def report(self, report: Report) -> None:
        """Turn each kind of problem into an error or a warning."""
        for (key, title, kind), examples in self.found.items():
            more = f'; and {len(examples) - MAX_EXAMPLES} more' if len(examples) > MAX_EXAMPLES else ''
            message = f'{title.format(n=len(examples))}: {"; ".join(examples[:MAX_EXAMPLES])}{more}'
            if kind is None:
                report.warn(key, message)
            else:
                report.error(key, message, kind)


def indices_to_read(leaf: Leaf, source: Source, max_files: int | None) -> list[int]:
    """Which samples of a data set are read, if `max_files` of its source are."""
    share = None if max_files is None else max(1, max_files * len(leaf.dataset) // max(source.length, 1))
    return evenly(len(leaf.dataset), share)


def damage(path: str) -> str | None:
    """What is wrong with the pixels of a picture; None if nothing is, or if the format is none of PIL's.

    OpenCV, which loads the images, fills up what is missing of a truncated file and says nothing; PIL does not.
    """
    try:
        with Image.open(path) as image:
            image.load()
    except (UnidentifiedImageError, Image.DecompressionBombError):
        return None
    except Exception as error:  # a damaged file can raise anything
        return f'{type(error).__name__}: {error}'
    return None


def check_labels(
    source: Source,
    name: str,
    max_files: int | None,
    report: Report,
    progress: Progress = _no_progress,
    decode: bool = False,
) -> LabelHistogram | None:
    """Read label files of one source through the `LoadAnnotations` of its own pipeline.

    Args:
        source: Its data sets.
        name: How the histogram is called.
        max_files: Read at most so many, spread evenly; None reads all.
        report: Receives the findings and the histogram.
        progress: Wraps the indices that are gone through.
        decode: Whether to look for truncated files, which some decoders fill up in silence.

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
        loader = _build_loader(*leaf.annotation_loaders[0], report)
        if loader is None:
            continue
        histogram.total_files += len(leaf.dataset)
        for index in progress(indices_to_read(leaf, source, max_files), f'labels of {name}'):
            labels = _read_labels(leaf, index, loader, problems, decode)
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
                    + _hint(values[~ignored], num_classes),
                )
    problems.report(report)
    histogram.pixels, histogram.images = pixels.tolist(), images.tolist()
    report.histograms.append(histogram)
    _warn_about_classes(source, histogram, report)
    return histogram


def _build_loader(key: str, transform: Mapping[str, Any], report: Report) -> Any:
    """A transform that loads files; None if it cannot be built, which is reported (once)."""
    if not is_known(TRANSFORMS, transform):  # reported by `check_types`
        return None
    try:
        return TRANSFORMS.build(deepcopy(dict(transform)))
    except Exception as error:
        report.error(key, f'{type_name(transform)} cannot be built: {type(error).__name__}: {error}')
        return None


def _hint(values: np.ndarray, num_classes: int) -> str:
    if int(values.max()) == num_classes and 0 not in values:
        return ' (classes seem to start at 1: reduce_zero_label=True?)'
    if num_classes == 2 and set(values.tolist()) <= {0, 255}:
        return ' (a 0/255 mask: its 255 has to become 1)'
    return ''


def _warn_about_classes(source: Source, histogram: LabelHistogram, report: Report) -> None:
    """Warn about classes that never occur; a sample of the files can only tell that a single value occurs.

    Labels to train on that hold nothing at all are an error.
    """
    absent = [name for name, count in zip(histogram.classes, histogram.images, strict=True) if count == 0]
    if histogram.files == 0 or not absent:
        return
    if len(absent) >= len(histogram.classes) - 1 and len(histogram.classes) > 1:
        extra, present = '', [name for name in histogram.classes if name not in absent]
        if histogram.ignored:
            extra = f'{" and" if present else " but"} the ignored label ({histogram.ignored} pixels)'
            extra += ' (is this a 0/255 mask?)'
        files = f'the {histogram.files} label files read'
        if present:
            report.warn(source.key, f'{files} hold no class but {present}{extra}')
        elif histogram.files == histogram.total_files and source.is_labeled and source.key.startswith('train_'):
            report.error(source.key, f'{files}, which are all, hold no class{extra}, so there is nothing to learn from')
        else:
            report.warn(source.key, f'{files} hold no class{extra}')
    elif histogram.files == histogram.total_files:
        extra = ''
        if absent[-1] == histogram.classes[-1] and any(leaf.info(0).get('reduce_zero_label') for leaf in source.leaves):
            extra = '; are the classes counted from 0 already, so that reduce_zero_label=True hides the first one?'
        report.warn(source.key, f'{len(absent)} of {len(histogram.classes)} classes never occur: {absent}{extra}')


def _read_labels(leaf: Leaf, index: int, loader: Any, problems: Problems, decode: bool) -> np.ndarray | None:
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
    damaged = damage(path) if decode and leaf.is_local else None
    if damaged is not None:
        problems.add(leaf.key, '{n} label files cannot be read', f'{path} ({damaged})')
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
            if image.format == 'JPEG':
                problems.add(
                    leaf.key,
                    '{n} label files are JPEGs, whose compression changes labels: write them as PNG',
                    label_path,
                    None,
                )
        if image_path is None or not os.path.isfile(image_path):
            return
        (width, height), orientation = _header(image_path)
    except Exception:
        return  # Not a format of PIL's, or a broken image, which the check of the images reports.
    if (height, width) != labels.shape:
        turned = f' (as its EXIF orientation {orientation} turns it)' if orientation > 1 else ''
        problems.add(
            leaf.key,
            '{n} label files are not as large as their images',
            f'{label_path} is {labels.shape[1]}x{labels.shape[0]}, {image_path} is {width}x{height}{turned}',
        )


def _header(path: str) -> tuple[tuple[int, int], int]:
    """Width and height of an image as it is loaded, and its EXIF orientation (1: as it is stored)."""
    with Image.open(path) as image:
        width, height = image.size
        # Asking a PNG for it would decode it.
        orientation = int(image.getexif().get(ORIENTATION_TAG, 1)) if image.format in ('JPEG', 'MPO') else 1
    return ((height, width) if orientation >= 5 else (width, height)), orientation


def check_images(
    source: Source,
    name: str,
    max_files: int | None,
    report: Report,
    progress: Progress = _no_progress,
    decode: bool = False,
    channels: int | None = None,
) -> None:
    """Look at images: files that are missing or broken, and sizes.

    Args:
        source: The data sets.
        name: How they are called.
        max_files: Read at most so many, spread evenly; None reads all.
        report: Receives the findings.
        progress: Wraps the indices that are gone through.
        decode: Whether every image is loaded by the transform of its own pipeline, not only its header by PIL.
        channels: Channels that the model takes; None if it does not say.
    """
    sizes: Counter[tuple[int, int]] = Counter()
    problems = Problems()
    for leaf in source.leaves:
        if not leaf.is_local:
            continue
        loader = None if leaf.image_loader is None else _build_loader(leaf.key_of_pipeline, leaf.image_loader, report)
        for index in progress(indices_to_read(leaf, source, max_files), f'images of {name}'):
            info = leaf.info(index)
            path = info.get('img_path')
            if path is None or path.startswith(MEMORY):
                continue
            if not os.path.isfile(path):
                problems.add(leaf.key, '{n} images do not exist', path, FileNotFoundError)
                continue
            try:
                size = _size_of(leaf, info, loader, decode, channels, problems)
            except Exception as error:  # a damaged file can raise anything
                problems.add(leaf.key, '{n} images cannot be read', f'{path} ({type(error).__name__}: {error})')
                continue
            if size is not None:
                sizes[size] += 1
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


def _size_of(
    leaf: Leaf, info: dict[str, Any], loader: Any, decode: bool, channels: int | None, problems: Problems
) -> tuple[int, int] | None:
    """Width and height of one image as it is loaded; None where only loading would tell, and there is no loader."""
    path, size, orientation = info['img_path'], None, 1
    try:
        size, orientation = _header(path)
    except (UnidentifiedImageError, Image.DecompressionBombError):
        decode = True  # None of PIL's formats, or a size that PIL refuses: the loader has to say.
    if orientation > 1 and leaf.has_labels:
        problems.add(
            leaf.key,
            '{n} images have an EXIF orientation, by which loading turns the image but not its labels; turn the files',
            f'{path} ({orientation})',
            None,
        )
    if not decode:
        return size
    damaged = damage(path)
    if damaged is not None:
        problems.add(leaf.key, '{n} images cannot be read', f'{path} ({damaged})')
        return size
    if loader is None:
        if size is None:
            problems.add(leaf.key, '{n} images cannot be read', f'{path} (no picture)')
        return size
    image = loader(deepcopy(info))['img']
    found = image.shape[2] if image.ndim == 3 else 1
    if channels is not None and found != channels:
        problems.add(
            leaf.key,
            f'{{n}} images have another number of channels than the {channels} that the data preprocessor takes',
            f'{path} has {found}',
        )
    return image.shape[1], image.shape[0]
