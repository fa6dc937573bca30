"""Files with one set of candidate labels for each sample of a data set, and a header that says how it was made."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mmssl.functional.candidates import candidate_mask
from mmssl.utils.label_file import labels_hash


@dataclass(frozen=True)
class CandidateFile:
    """What a candidate file says.

    Attributes:
        path: The file.
        sets: Labels of each set, in the order of the data set.
        header: Its ``# key: value`` lines; empty for a list of somebody else's.
    """

    path: str
    sets: list[list[int]]
    header: dict[str, str] = field(default_factory=dict)

    def mask(self, true: Sequence[int] | None, num_classes: int, length: int, owner: str, noisy: bool) -> np.ndarray:
        """The sets as a mask, after all checks against a data set.

        Args:
            true: The data set's labels, if it has some.
            num_classes: Its classes.
            length: Its samples.
            owner: Config key, for messages.
            noisy: Whether sets may lack the true label.

        Returns:
            Bool, shape (N, C).

        Raises:
            ValueError: Another number of samples or classes, sets made from other labels, an empty set, a label outside
                the classes or twice in a set, or a set without its true label.
        """
        where = f'{owner}={self.path!r}'
        announced = self.header.get('num_samples')
        if announced is not None and announced != str(len(self.sets)):
            raise ValueError(f'{where} has {len(self.sets)} sets, but its header says {announced}: is it cut off?')
        if len(self.sets) != length:
            raise ValueError(f'{where} has {len(self.sets)} candidate sets, the data set has {length} samples; is it '
                             'the file of another data set?')
        classes = self.header.get('num_classes')
        if classes is not None and classes != str(num_classes):
            raise ValueError(f'{where} is for {classes} classes, the data set has {num_classes}')
        source = self.header.get('source_sha256')
        if source is not None and true is not None and source != labels_hash(true):
            raise ValueError(f'{where} was made from other labels (sha256 {source[:12]}..., those of the data set are '
                             f'{labels_hash(true)[:12]}...): it is the file of another data set, or of this one in '
                             'another order')
        for sample, labels in enumerate(self.sets):
            if not labels:
                raise ValueError(f'{where}: the set of sample {sample} is empty; it needs one label at least')
            if min(labels) < 0 or max(labels) >= num_classes:
                raise ValueError(f'{where}: sample {sample} has the candidates {labels}; allowed are 0 to '
                                 f'{num_classes - 1} ({num_classes} classes)')
            if len(set(labels)) != len(labels):
                raise ValueError(f'{where}: a label is twice in the set {labels} of sample {sample}')
        mask = candidate_mask(self.sets, num_classes)
        if true is not None and not noisy:
            without = np.flatnonzero(~mask[np.arange(length), np.asarray(true, np.int64)])
            if len(without):
                sample = int(without[0])
                raise ValueError(f'{where}: {len(without)} sets lack the true label, first that of sample {sample}: '
                                 f'{self.sets[sample]} without {true[sample]}; set noisy=True if that is meant')
        return mask


def read_candidate_file(path: str | os.PathLike, owner: str) -> CandidateFile:
    """Read candidate sets: one a line, labels separated by spaces, ``-`` for an empty one; ``#`` starts the header.

    Args:
        path: The text file (UTF-8).
        owner: Config key, for messages.

    Raises:
        FileNotFoundError: No such file.
        ValueError: A line with something that is no label, or no line at all.
    """
    path = os.fspath(path)
    if not os.path.isfile(path):
        raise FileNotFoundError(f'{owner}: there is no file {path!r}')
    try:
        text = Path(path).read_text(encoding='utf-8-sig')
    except UnicodeDecodeError as error:
        raise ValueError(f'{owner}: {path!r} is not a text file in UTF-8: {error}') from error
    sets, header = [], {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if words and words[0].startswith('#'):
            key, colon, value = line.lstrip('# ').partition(':')
            if colon:
                header[key.strip()] = value.strip()
            continue
        if words == ['-'] or not words:
            sets.append([])
            continue
        try:
            sets.append([int(word) for word in words])
        except ValueError:
            raise ValueError(f'{owner}: {path!r}, line {number}: {line!r} is no set of labels (integers separated by '
                             'spaces)') from None
    if not sets:
        raise ValueError(f'{owner}: {path!r} has no candidate set')
    return CandidateFile(path, sets, header)
