"""Files with one label for each sample of a data set, and a header that says of which data set and how it was made."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mmssl.utils.atomic import write_atomically

# Raised when the same arguments would give another file; it is in the header instead of the version of mmssl, so that a
# release does not change files that it does not change.
FORMAT_VERSION = 1


@dataclass(frozen=True)
class LabelFile:
    """What a label file says.

    Attributes:
        path: The file.
        labels: One label for each sample, in the order of the data set.
        header: Its ``# key: value`` lines; empty for a list of somebody else's.
    """

    path: str
    labels: list[int]
    header: dict[str, str] = field(default_factory=dict)

    def check(self, true: Sequence[int], num_classes: int, owner: str) -> None:
        """Refuse a file that is not one of this data set.

        Args:
            true: The data set's own labels.
            num_classes: Its classes.
            owner: Config key, for messages.

        Raises:
            ValueError: Another number of samples or classes, other labels than those the file was made from, or a
                label outside the classes.
        """
        where = f'{owner}={self.path!r}'
        announced = self.header.get('num_samples')
        if announced is not None and announced != str(len(self.labels)):
            raise ValueError(f'{where} has {len(self.labels)} labels, but its header says {announced}: is it cut off?')
        if len(self.labels) != len(true):
            raise ValueError(f'{where} has {len(self.labels)} labels, the data set has {len(true)} samples; is it the '
                             'file of another data set?')
        classes = self.header.get('num_classes')
        if classes is not None and classes != str(num_classes):
            raise ValueError(f'{where} is for {classes} classes, the data set has {num_classes}')
        source = self.header.get('source_sha256')
        if source is not None and source != labels_hash(true):
            raise ValueError(f'{where} was made from other labels (sha256 {source[:12]}..., those of the data set are '
                             f'{labels_hash(true)[:12]}...): it is the file of another data set, or of this one in '
                             'another order')
        wrong = {label: line for line, label in enumerate(self.labels) if not 0 <= label < num_classes}
        if wrong:
            label, sample = next(iter(wrong.items()))
            raise ValueError(f'{where}: sample {sample} has the label {label}; allowed are 0 to {num_classes - 1} '
                             f'({num_classes} classes)')


def labels_hash(labels: Sequence[int]) -> str:
    """SHA-256 of the labels in order, one a line: what ``sha256sum`` prints of a list of them."""
    return hashlib.sha256(''.join(f'{int(label)}\n' for label in labels).encode()).hexdigest()


def render_header(tool: str, entries: Mapping[str, Any]) -> str:
    """The first lines of a file that a tool makes: ``# mmssl TOOL, version N``, and one line for each entry."""
    lines = [f'mmssl {tool}, version {FORMAT_VERSION}', *(f'{key}: {value}' for key, value in entries.items())]
    return ''.join(f'# {line}\n' for line in lines)


def read_label_file(path: str | os.PathLike, owner: str) -> LabelFile:
    """Read labels: one integer a line, the last column where there are several; lines with ``#`` are the header.

    Args:
        path: The text file (UTF-8).
        owner: Config key, for messages.

    Raises:
        FileNotFoundError: No such file.
        ValueError: A line without a label, or no line at all.
    """
    path = os.fspath(path)
    if not os.path.isfile(path):
        raise FileNotFoundError(f'{owner}: there is no file {path!r}')
    labels, header = [], {}
    try:
        text = Path(path).read_text(encoding='utf-8-sig')
    except UnicodeDecodeError as error:
        raise ValueError(f'{owner}: {path!r} is not a text file in UTF-8: {error}') from error
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words:
            continue
        if words[0].startswith('#'):
            key, colon, value = line.lstrip('# ').partition(':')
            if colon:
                header[key.strip()] = value.strip()
            continue
        try:
            labels.append(int(words[-1]))
        except ValueError:
            raise ValueError(f'{owner}: {path!r}, line {number}: {words[-1]!r} is no label (an integer)') from None
    if not labels:
        raise ValueError(f'{owner}: {path!r} has no label')
    return LabelFile(path, labels, header)


def write_new(path: str | os.PathLike, text: str, force: bool = False) -> str:
    """Write a text file, whole or not at all; one that already has this content is left alone.

    Args:
        path: The file; its folder is created if need be.
        text: Its content.
        force: Whether to overwrite another content.

    Returns:
        What was done: ``'PATH: written'``, ``'... unchanged'``, ``'... overwritten'``.

    Raises:
        FileExistsError: It has another content, and ``force`` is not set.
    """
    path, data = Path(path), text.encode()
    exists = path.exists()
    if exists and path.read_bytes() == data:
        return f'{path}: unchanged'
    if exists and not force:
        raise FileExistsError(f'{path} exists with other content; nothing was written: choose another --out, or '
                              '--force to overwrite')
    write_atomically(path, data)
    return f'{path}: {"overwritten" if exists else "written"}'
