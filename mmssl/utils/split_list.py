"""Reading split lists: which images belong to a source, in every format that is in use."""

import glob
import os
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

IMAGE_SUFFIXES = ('.jpg', '.jpeg', '.png', '.bmp', '.tif', '.tiff', '.webp', '.ppm', '.pgm')


@dataclass(frozen=True)
class SplitEntry:
    """One line of a split list.

    Attributes:
        image: Image id or path, as written.
        label: Path of the label map or class, as written, or None if the line names only the image.
        line: Line number in the file, from 1.
        text: The whole line, without the blanks around it.
    """

    image: str
    label: str | None
    line: int
    text: str


def read_split_list(path: str | os.PathLike,
                    suffixes: Sequence[str] = (),
                    owner: str = 'ann_file',
                    label_files: bool = True) -> list[SplitEntry]:
    """Read a split list.

    Lines are image ids (``2007_000032``), image paths, or image and label separated by a tab or a space. A space
    separates only if an image suffix stands before it, so file names may hold spaces. Empty lines and lines that
    start with ``#`` (the header of generated lists) are skipped.

    Args:
        path: The text file (UTF-8).
        suffixes: Image suffixes of the data set, in addition to the usual ones.
        owner: Config key, for messages.
        label_files: Whether the second column names files, of which each belongs to one image, or classes.

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
        SplitEntry(*_split(line, endings), number, line) for number, line in enumerate(lines, 1)
        if line and not line.startswith('#')
    ]
    if not entries:
        raise ValueError(f'{owner}: the list {path!r} names no image')
    for kind in ('image', 'label') if label_files else ('image', ):
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
    """Finds files by listing each folder once, instead of one system call for each file."""

    def __init__(self) -> None:
        self._folders: dict[str, set[str]] = {}

    def find(self, path: str) -> str | None:
        """The file ``path`` as it is really spelled, or None if there is none.

        The ending may be in the other case (``a.JPG``), and accented letters may be composed in the other way (file
        systems of macOS write them apart). Links to nowhere are no files. Paths of remote back ends (``s3://...``) are
        taken on trust.
        """
        if '://' in path:
            return path
        folder, name = os.path.split(os.path.normpath(path))
        if folder not in self._folders:
            self._folders[folder] = _files_in(folder or '.')
        names = self._folders[folder]
        if name in names:
            return path
        other = next((spelling for spelling in _spellings(name) if spelling in names), None)
        return None if other is None else os.path.join(os.path.dirname(path), other)


def _files_in(folder: str) -> set[str]:
    """Names of the files in a folder; none if there is no such folder."""
    try:
        with os.scandir(folder) as entries:
            return {entry.name for entry in entries if _is_file(entry)}
    except OSError:
        return set()


def _is_file(entry: os.DirEntry) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link to itself
        return False


def _spellings(name: str) -> Iterator[str]:
    """Other ways to write the name of the same file."""
    stem, ending = os.path.splitext(name)
    for text in (name, stem + ending.lower(), stem + ending.upper()):
        yield text
        if not text.isascii():
            yield unicodedata.normalize('NFC', text)
            yield unicodedata.normalize('NFD', text)


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
            path = index.find(os.path.join(folder, name))
            if path is not None:
                return path
    return None


def find_listed(entries: Sequence[SplitEntry], folders: Sequence[str], suffixes: Sequence[str], index: FileIndex,
                owner: str, where: str) -> list[str]:
    """Paths of the images that a list names.

    Args:
        entries: The list.
        folders: Where to look, in this order.
        suffixes: Suffixes to try for an id.
        index: Listings of the folders that were already seen.
        owner: Config key and list, for messages.
        where: Config keys of ``folders`` and ``suffixes`` with their values, for messages.

    Returns:
        As many paths as there are entries.

    Raises:
        FileNotFoundError: Images that do not exist.
        ValueError: An image that is listed twice in two spellings, such as ``a`` and ``a.jpg``.
    """
    found: dict[str, SplitEntry] = {}
    paths, missing = [], []
    for entry in entries:
        path = find_image(entry.image, folders, suffixes, index)
        if path is None:
            missing.append(entry.image)
            continue
        first = found.setdefault(os.path.normpath(path), entry)
        if first is not entry:
            raise ValueError(f'{owner} names {path!r} twice, as {first.image!r} in line {first.line} and as '
                             f'{entry.image!r} in line {entry.line}')
        paths.append(path)
    if missing:
        raise FileNotFoundError(f'{owner}: of the {len(entries)} images listed, {describe_missing(missing)} are not in '
                                f'{where}')
    return paths


def find_label(label: str, folders: Sequence[str], index: FileIndex) -> str:
    """Path of a label map in the first of ``folders`` that has it; where it should be in the first one, if none has."""
    paths = [os.path.join(folder, label) for folder in folders]
    return next((found for found in map(index.find, paths) if found is not None), paths[0])


def relative_name(path: str, folders: Sequence[str]) -> str:
    """``path`` relative to the first of ``folders`` that holds it, else its last part.

    Examples:
        >>> relative_name('data/img/aachen/a.png', ['data/img', 'data'])
        'aachen/a.png'
        >>> relative_name('/elsewhere/a.png', ['data/img', 'data'])
        'a.png'
    """
    full = os.path.abspath(path)
    for folder in folders:
        start = os.path.join(os.path.abspath(folder), '')
        if full.startswith(start):
            return full[len(start):]
    return os.path.basename(path)


def check_suffixes(suffixes: Sequence[str], owner: str) -> None:
    """Refuse ``'jpg'`` where ``'.jpg'`` is meant: no id of a list would be found.

    Raises:
        ValueError: Such a suffix.
    """
    for suffix in suffixes:
        if '.' + suffix.lower() in IMAGE_SUFFIXES:
            raise ValueError(f'{owner}={suffix!r} has no dot; write {"." + suffix!r}')


def scan_folder(folder: str, suffixes: Sequence[str], recursive: bool = True) -> list[str]:
    """Files below a folder that end with one of ``suffixes``, sorted; hidden files and folders are left out.

    Args:
        folder: An existing folder.
        suffixes: Endings, compared without regard to case.
        recursive: Whether to go into sub-folders (links to folders included).

    Returns:
        Paths relative to ``folder``.

    Raises:
        FileNotFoundError: An image is a link to nowhere.
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
                    if entry.is_symlink() and not os.path.exists(entry.path):
                        raise FileNotFoundError(f'{entry.path!r} is a link to {os.readlink(entry.path)!r}, which does '
                                                'not exist')
                    found.append(name)
    return sorted(found)


def scan_glob(pattern: str, suffixes: Sequence[str], root: str = '') -> list[str]:
    """Files that match a glob (``**`` crosses folders) and end with one of ``suffixes``, sorted, none hidden.

    Args:
        pattern: The glob, relative to ``root`` or absolute.
        suffixes: Endings, compared without regard to case.
        root: A folder, whose own name may hold wildcards that mean nothing.

    Returns:
        Paths, ``root`` included.
    """
    endings = tuple(suffix.lower() for suffix in suffixes)
    found = glob.glob(pattern, root_dir=root or None, recursive=True)
    return sorted(os.path.join(root, path) for path in found if path.lower().endswith(endings))


def describe_missing(names: Iterable[str]) -> str:
    """``3 images (first: a, b, c)`` for messages."""
    names = list(names)
    return f'{len(names)} (first: {", ".join(names[:3])})'
