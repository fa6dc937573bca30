"""What the checks found: errors and warnings that name the config key, and figures about data, batch and memory."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Finding:
    """One error or warning.

    Attributes:
        level: `'error'` (training would fail or be wrong) or `'warning'`.
        key: Config key, such as `train_dataloader.batch_size`.
        message: What was found and what is allowed.
        kind: Exception that stands for it: ValueError or FileNotFoundError.
    """

    level: str
    key: str
    message: str
    kind: type[Exception] = ValueError

    def __str__(self) -> str:
        return f'{self.key}: {self.message}'


@dataclass
class SourceSummary:
    """Size of one training source and its place in a batch.

    Attributes:
        name: Its key in `sources`, or `train` where the data set has a single source.
        key: Config key.
        images: Images, repeats counted.
        per_gpu: Images of it in the batch of one process; None if the batch cannot be composed.
        global_batch: The same over all processes.
        passes_per_epoch: How often one epoch (a pass over the source that needs most iterations) goes through it.
        passes_per_run: How often the whole run goes through it; None if the length of the run is unknown.
    """

    name: str
    key: str
    images: int
    per_gpu: int | None = None
    global_batch: int | None = None
    passes_per_epoch: float | None = None
    passes_per_run: float | None = None

    def __str__(self) -> str:
        parts = [f'{self.images} images']
        if self.per_gpu is not None:
            parts.append(f'{self.per_gpu} per GPU, {self.global_batch} in the global batch')
        if self.passes_per_epoch is not None:
            parts.append(f'{self.passes_per_epoch:.2f} passes per epoch')
        if self.passes_per_run is not None:
            parts.append(f'{self.passes_per_run:.1f} passes over the run')
        return f'{self.name}: {"; ".join(parts)}'


@dataclass
class LabelHistogram:
    """How often each class occurs in the label files of one data set.

    Attributes:
        name: Which data set.
        classes: Class names.
        files: Label files read.
        total_files: Label files there are.
        pixels: Pixels of each class.
        images: Label files that show each class.
        ignored: Pixels with the ignored label.
        invalid: Pixels with a label that is neither.
    """

    name: str
    classes: list[str]
    files: int = 0
    total_files: int = 0
    pixels: list[int] = field(default_factory=list)
    images: list[int] = field(default_factory=list)
    ignored: int = 0
    invalid: int = 0

    def lines(self) -> list[str]:
        """A table, one line for each class."""
        valid = max(sum(self.pixels), 1)
        every = max(sum(self.pixels) + self.ignored + self.invalid, 1)
        width = max([len(name) for name in self.classes] + [8])
        read = f'{self.files}' if self.files == self.total_files else f'{self.files} of {self.total_files}'
        lines = [
            f'labels of {self.name} ({read} files)',
            f'  {"id":>3} {"class":<{width}} {"pixels":>13} {"share":>8} {"images":>7}',
        ]
        for index, (name, pixels, images) in enumerate(zip(self.classes, self.pixels, self.images, strict=True)):
            lines.append(f'  {index:>3} {name:<{width}} {pixels:>13} {pixels / valid:>8.3%} {images:>7}')
        lines.append(f'  {"":>3} {"ignored":<{width}} {self.ignored:>13} {self.ignored / every:>8.3%} of all')
        if self.invalid:
            lines.append(f'  {"":>3} {"INVALID":<{width}} {self.invalid:>13} {self.invalid / every:>8.3%} of all')
        if self.pixels and min(self.pixels) > 0:
            lines.append(f'  balancing class_weight of CrossEntropyLoss: {self.class_weight()}')
        return lines

    def class_weight(self) -> list[float]:
        """Weights for imbalanced classes: one over the square root of a class's share, with mean 1 over all pixels.

        The root is a compromise: with the full inverse, rare classes spill over their neighbours.
        """
        roots = [(count / sum(self.pixels)) ** 0.5 for count in self.pixels]
        return [round(1 / (root * sum(roots)), 2) for root in roots]


@dataclass
class ImageSizes:
    """Sizes of the images of one data set, in pixels.

    Attributes:
        name: Which data set.
        files: Images looked at.
        sizes: The most frequent sizes, as (width, height, count).
        distinct: Number of distinct sizes.
        smallest: Smallest width and smallest height (not of one image).
        largest: Largest width and largest height.
    """

    name: str
    files: int
    sizes: list[tuple[int, int, int]]
    distinct: int
    smallest: tuple[int, int]
    largest: tuple[int, int]

    def __str__(self) -> str:
        common = ', '.join(f'{w}x{h} ({n})' for w, h, n in self.sizes)
        if self.distinct == 1:
            return f'{self.name}: {self.files} images, {common}'
        return (
            f'{self.name}: {self.files} images, {self.distinct} sizes, widths {self.smallest[0]} to {self.largest[0]}, '
            f'heights {self.smallest[1]} to {self.largest[1]}, most often {common}'
        )


@dataclass
class Report:
    """Everything that a check found.

    Attributes:
        findings: Errors and warnings in the order of the checks.
        facts: Lines worth reading that are neither, such as class counts.
        sources: One entry for each training source.
        histograms: One entry for each data set with labels.
        image_sizes: One entry for each data set (full check only).
        memory: Estimated memory per GPU (full check only), see `estimate_memory`.
    """

    findings: list[Finding] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    sources: list[SourceSummary] = field(default_factory=list)
    histograms: list[LabelHistogram] = field(default_factory=list)
    image_sizes: list[ImageSizes] = field(default_factory=list)
    memory: dict[str, Any] | None = None

    def error(self, key: str, message: str, kind: type[Exception] = ValueError) -> None:
        """Record an error."""
        self.findings.append(Finding('error', key, message, kind))

    def warn(self, key: str, message: str) -> None:
        """Record a warning."""
        self.findings.append(Finding('warning', key, message))

    @property
    def errors(self) -> list[Finding]:
        """The errors among the findings."""
        return [finding for finding in self.findings if finding.level == 'error']

    def errors_below(self, key: str) -> list[Finding]:
        """The errors about a config key or one below it."""
        return [finding for finding in self.errors if f'{finding.key}.'.startswith(f'{key}.')]

    @property
    def warnings(self) -> list[Finding]:
        """The warnings among the findings."""
        return [finding for finding in self.findings if finding.level == 'warning']

    def raise_errors(self) -> None:
        """Raise one exception that lists all errors.

        Raises:
            FileNotFoundError: If the first error is a missing file or folder.
            ValueError: If it is any other.
        """
        errors = self.errors
        if not errors:
            return
        if len(errors) == 1:
            raise errors[0].kind(str(errors[0]))
        raise errors[0].kind(f'{len(errors)} errors in the config:' + _bullets(errors))

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON can hold it."""
        return dict(
            errors=[dict(key=f.key, message=f.message, kind=f.kind.__name__) for f in self.errors],
            warnings=[dict(key=f.key, message=f.message) for f in self.warnings],
            facts=list(self.facts),
            sources=[asdict(source) for source in self.sources],
            histograms=[asdict(histogram) for histogram in self.histograms],
            image_sizes=[asdict(sizes) for sizes in self.image_sizes],
            memory=self.memory,
        )

    def to_text(self) -> str:
        """The report for a reader, errors last."""
        blocks = [
            ['sources', *(f'  {source}' for source in self.sources)] if self.sources else [],
            ['facts', *(f'  {fact}' for fact in self.facts)] if self.facts else [],
            ['image sizes', *(f'  {sizes}' for sizes in self.image_sizes)] if self.image_sizes else [],
            *(histogram.lines() for histogram in self.histograms),
            _memory_lines(self.memory) if self.memory else [],
            [f'{len(self.warnings)} warning(s)' + _bullets(self.warnings)] if self.warnings else [],
            [f'{len(self.errors)} error(s)' + _bullets(self.errors)] if self.errors else ['no errors'],
        ]
        return '\n\n'.join('\n'.join(block) for block in blocks if block)


def _bullets(items: Iterable[object]) -> str:
    return ''.join(f'\n  - {item}' for item in items)


def _memory_lines(memory: dict[str, Any]) -> list[str]:
    lines = [f'estimated memory per GPU: {memory["total"] / 2**30:.2f} GiB'] if 'total' in memory else ['memory']
    for name in ('parameters', 'gradients', 'optimizer_state', 'buffers', 'activations'):
        if name in memory:
            lines.append(f'  {name.replace("_", " "):<16} {memory[name] / 2**20:>10.1f} MiB')
    return [*lines, f'  {memory["how"]}']
