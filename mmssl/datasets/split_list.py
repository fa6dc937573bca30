"""Reading split lists: which images belong to a source, in every format that is in use."""

import glob
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

IMAGE_SUFFIXES = ('.jpg', '.jpeg', '.png', '.bmp', '.tif', '.tiff', '.webp', '.ppm', '.pgm')


@dataclass(frozen=True)
class SplitEntry:
    """One line of a split list.

    Attributes:
        image: Image id or path, as written.
        label: Path of the label map, as written, or None if the line names only the image.
        line: Line number in the file, from 1.
    """

    image: str
    label: str | None
    line: int


def read_split_list(path: str | os.PathLike, suffixes: Sequence[str] = (), owner: str = 'ann_file') -> list[SplitEntry]:
    """Read a split list.

    Lines are image ids (``2007_000032``), image paths, or image and label separated by a tab or a space. A space
    separates only if an image suffix stands before it, so file names may hold spaces. Empty lines and lines that
    start with ``#`` (the header of generated lists) are skipped.

    Args:
        path: The text file (UTF-8).
        suffixes: Image suffixes of the data set, in addition to the usual ones.
        owner: Config key, for messages.

    Returns:
        Entries in the order of the file.

    Raises:
        FileNotFoundError: No such file.
        ValueError: No entry, or an image or a label map that is listed twice.
    """
    path = os.fspath(path)
    if not os.path.isfile(path):
        raise FileNotFoundError(f'{owner}: there is no list {path!r}')
    try:
        with open(path, encoding='utf-8-sig') as file:
            lines = [line.strip() for line in file]
    except UnicodeDecodeError as error:
        raise ValueError(f'{owner}: {path!r} is not a text file in UTF-8: {error}') from error
    endings = tuple(suffix.lower() for suffix in (*suffixes, *IMAGE_SUFFIXES))
    entries = [
        SplitEntry(*_split(line, endings), number) for number, line in enumerate(lines, 1)
        if line and not line.startswith('#')
    ]
    if not entries:
        raise ValueError(f'{owner}: the list {path!r} names no image')
    for kind in ('image', 'label'):
        seen: dict[str, int] = {}
        for entry in entries:
            value = getattr(entry, kind)
            if value is None:
                continue
            if value in seen:
                raise ValueError(f'{owner}: the list {path!r} names the {kind} {value!r} twice, in lines {seen[value]} '
                                 f'and {entry.line}')
            seen[value] = entry.line
    return entries


def _split(line: str, endings: tuple[str, ...]) -> tuple[str, str | None]:
    """Image and label of one line."""
    if '\t' in line:
        image, _, label = line.partition('\t')
        return image.strip(), label.strip() or None
    place = line.find(' ')
    while place != -1:
        if line[:place].lower().endswith(endings):
            return line[:place], line[place:].strip()
        place = line.find(' ', place + 1)
    return line, None


class FileIndex:
    """Answers whether files exist by listing each folder once, instead of one system call for each file."""

    def __init__(self) -> None:
        self._folders: dict[str, set[str]] = {}

    def has(self, path: str) -> bool:
        """Whether the file ``path`` exists; paths of remote back ends (``s3://...``) are taken on trust."""
        if '://' in path:
            return True
        folder, name = os.path.split(os.path.normpath(path))
        if folder not in self._folders:
            try:
                self._folders[folder] = set(os.listdir(folder or '.'))
            except OSError:
                self._folders[folder] = set()
        return name in self._folders[folder]


def strip_suffix(name: str, suffixes: Sequence[str]) -> str:
    """``name`` without the longest of ``suffixes`` that it ends with, else without a usual image suffix.

    Examples:
        >>> strip_suffix('aachen/a_000_leftImg8bit.png', ['_leftImg8bit.png'])
        'aachen/a_000'
        >>> strip_suffix('2007_000032.jpg', ['.jpg', '.png'])
        '2007_000032'
        >>> strip_suffix('clip.7', ['.jpg'])
        'clip.7'
    """
    for suffix in sorted(suffixes, key=len, reverse=True):
        if name.lower().endswith(suffix.lower()):
            return name[:len(name) - len(suffix)]
    stem, ending = os.path.splitext(name)
    return stem if ending.lower() in IMAGE_SUFFIXES else name


def find_image(image: str, folders: Sequence[str], suffixes: Sequence[str], index: FileIndex) -> str | None:
    """Path of the image that a list names.

    Args:
        image: Id or path, as written in the list.
        folders: Where to look, in this order.
        suffixes: Suffixes to try for an id.
        index: Listings of the folders that were already seen.

    Returns:
        The path, or None if no such file exists.
    """
    names = [image + suffix for suffix in suffixes]
    if image.lower().endswith((*(suffix.lower() for suffix in suffixes), *IMAGE_SUFFIXES)):
        names.insert(0, image)
    for folder in folders:
        for name in names:
            path = os.path.join(folder, name)
            if index.has(path):
                return path
    return None


def scan_folder(folder: str, suffixes: Sequence[str], recursive: bool = True) -> list[str]:
    """Files below a folder that end with one of ``suffixes``, sorted; hidden files and folders are left out.

    Args:
        folder: An existing folder.
        suffixes: Endings, compared without regard to case.
        recursive: Whether to go into sub-folders (links to folders included).

    Returns:
        Paths relative to ``folder``.
    """
    endings = tuple(suffix.lower() for suffix in suffixes)
    found, todo, seen = [], [''], set()
    while todo:
        relative = todo.pop()
        here = os.path.join(folder, relative)
        real = os.path.realpath(here)
        # A link back to a parent must not make this endless.
        if real in seen:
            continue
        seen.add(real)
        with os.scandir(here) as entries:
            for entry in entries:
                if entry.name.startswith('.'):
                    continue
                name = os.path.join(relative, entry.name)
                if entry.is_dir():
                    if recursive:
                        todo.append(name)
                elif entry.name.lower().endswith(endings):
                    found.append(name)
    return sorted(found)


def scan_glob(pattern: str, suffixes: Sequence[str]) -> list[str]:
    """Files that match a glob (``**`` crosses folders) and end with one of ``suffixes``, sorted, none hidden."""
    endings = tuple(suffix.lower() for suffix in suffixes)
    return sorted(path for path in glob.glob(pattern, recursive=True) if path.lower().endswith(endings))


def describe_missing(names: Iterable[str]) -> str:
    """``3 images (first: a, b, c)`` for messages."""
    names = list(names)
    return f'{len(names)} (first: {", ".join(names[:3])})'
