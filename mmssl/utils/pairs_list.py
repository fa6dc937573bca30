"""Reading lists of pairs of images: the format of LFW, and two paths with a 0 or a 1."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Pair:
    """Two images.

    Attributes:
        first: Path of the first, as written, or made of name and number.
        second: Path of the second.
        same: Whether they show the same identity.
        line: Line number in the file, from 1.
    """

    first: str
    second: str
    same: bool
    line: int


def read_pairs(path: str | os.PathLike, suffix: str = '.jpg', owner: str = 'ann_file') -> list[Pair]:
    """Read a list of pairs.

    A first line of one or two numbers, ``10 300`` (folds, pairs of each kind in a fold) or ``500``, makes it a list of
    LFW: ``NAME 1 4`` are two images of one person, ``NAME 1 OTHER 2`` those of two, in the files
    ``NAME/NAME_0001.jpg``. Otherwise a line is ``PATH PATH 1`` (same) or ``PATH PATH 0``. Columns are separated by
    tabs, or by blanks where there is no tab. Empty lines and lines that start with ``#`` are skipped.

    Args:
        path: The text file (UTF-8).
        suffix: Suffix of the images of a list of LFW.
        owner: Config key, for messages.

    Returns:
        Pairs in the order of the file.

    Raises:
        FileNotFoundError: No such file.
        ValueError: A line of neither format, no pair, or not as many as the first line says.
    """
    path = os.fspath(path)
    if not os.path.isfile(path):
        raise FileNotFoundError(f'{owner}: there is no list {path!r}')
    try:
        text = Path(path).read_text(encoding='utf-8-sig')
    except UnicodeDecodeError as error:
        raise ValueError(f'{owner}: {path!r} is not a text file in UTF-8: {error}') from error
    lines = [(number, line.split('\t') if '\t' in line.strip() else line.split())
             for number, line in enumerate(text.splitlines(), 1)]  # yapf: disable
    lines = [(number, [word.strip() for word in words]) for number, words in lines
             if words and ''.join(words).strip() and not words[0].startswith('#')]  # yapf: disable
    header = lines[0][1] if lines and all(word.isdigit() for word in lines[0][1]) else None
    is_lfw = header is not None and len(header) <= 2
    pairs = []
    for number, words in lines[1:] if is_lfw else lines:
        pair = _of_lfw(words, suffix, number) if is_lfw else _of_paths(words, number)
        if pair is None:
            expected = '`NAME 1 4` or `NAME 1 OTHER 2`' if is_lfw else '`PATH PATH 1` or `PATH PATH 0`'
            raise ValueError(f'{owner}: {path!r}, line {number}: expected {expected}, got {" ".join(words)!r}'
                             + ('' if is_lfw else '; a list of LFW starts with a line such as `10 300`'))
        pairs.append(pair)
    if not pairs:
        raise ValueError(f'{owner}: the list {path!r} has no pair')
    if is_lfw:
        announced = 2 * int(header[-1]) * (int(header[0]) if len(header) == 2 else 1)
        if announced != len(pairs):
            raise ValueError(f'{owner}: the list {path!r} has {len(pairs)} pairs, but its first line '
                             f'({" ".join(header)}) says {announced}')
    return pairs


def _of_lfw(words: list[str], suffix: str, line: int) -> Pair | None:
    def image(name: str, number: str) -> str:
        return f'{name}/{name}_{int(number):04d}{suffix}'

    if len(words) == 3 and words[1].isdigit() and words[2].isdigit():
        return Pair(image(words[0], words[1]), image(words[0], words[2]), True, line)
    if len(words) == 4 and words[1].isdigit() and words[3].isdigit():
        return Pair(image(words[0], words[1]), image(words[2], words[3]), False, line)
    return None


def _of_paths(words: list[str], line: int) -> Pair | None:
    if len(words) != 3 or words[2] not in ('0', '1'):
        return None
    return Pair(words[0], words[1], words[2] == '1', line)
