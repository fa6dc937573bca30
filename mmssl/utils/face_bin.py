"""Reading the `.bin` files in which benchmarks of face verification circulate, without running what is in them."""

import io
import os
import pickle
from pathlib import Path
from typing import Any, NamedTuple

# How a file begins, and the suffix of its kind.
SUFFIXES = {b'\xff\xd8\xff': '.jpg', b'\x89PNG\r\n\x1a\n': '.png'}
LISTS = (list, tuple)
MODULES = ('builtins', '__builtin__')


class FaceBin(NamedTuple):
    """What a file holds.

    Attributes:
        images: Encoded images; 2i and 2i + 1 are those of pair i.
        same: Whether each pair shows one person.
    """

    images: list[bytes]
    same: list[bool]


class _Unpickler(pickle.Unpickler):
    """An unpickler that makes numbers, bytes, strings, lists and tuples: any other name in the file is an error."""

    def find_class(self, module: str, name: str) -> Any:
        """Only what Python itself writes for bytes in its old protocols."""
        if module in MODULES and name in ('bytes', 'bytearray'):
            return _old_bytes
        if (module, name) == ('_codecs', 'encode'):
            return _old_bytes
        raise pickle.UnpicklingError(f'it asks for {module}.{name}, which could run code')


def _old_bytes(text: Any = '', encoding: str = 'latin-1') -> bytes:
    if not isinstance(text, (str, bytes)) or encoding not in ('latin1', 'latin-1'):
        raise pickle.UnpicklingError('it makes bytes of something that is no text')
    return text if isinstance(text, bytes) else text.encode('latin-1')


def read_face_bin(path: str | os.PathLike, owner: str = 'face bin') -> FaceBin:
    """Read a pickled pair of encoded images and truths, of Python 2 or 3.

    Nothing in the file is run: names other than those of bytes are refused before they are looked up.

    Args:
        path: The file.
        owner: Option or config key, for messages.

    Raises:
        FileNotFoundError: No such file.
        ValueError: It is no such pickle, or its images and truths do not fit.
    """
    path = os.fspath(path)
    if not os.path.isfile(path):
        raise FileNotFoundError(f'{owner}: there is no file {path!r}')
    try:
        content = _Unpickler(io.BytesIO(Path(path).read_bytes()), encoding='bytes').load()
    except Exception as error:  # a damaged pickle can end in almost any error
        raise ValueError(f'{owner}: {path!r} is no pickle of images and truths: {error}') from error
    if not isinstance(content, LISTS) or len(content) != 2 or not all(isinstance(part, LISTS) for part in content):
        raise ValueError(f'{owner}: {path!r} must hold two lists, images and truths; found {type(content).__name__}'
                         + (f' of {[type(part).__name__ for part in content]}' if isinstance(content, LISTS) else ''))
    images, same = content
    if not same or len(images) != 2 * len(same):
        raise ValueError(f'{owner}: {path!r} has {len(images)} images and {len(same)} truths; it must have two images '
                         'for each truth')
    for index, image in enumerate(images):
        if not isinstance(image, (bytes, bytearray)) or image_suffix(image) is None:
            found = bytes(image[:8]) if isinstance(image, (bytes, bytearray)) else type(image).__name__
            raise ValueError(f'{owner}: {path!r}: image {index} must be the bytes of a JPEG or PNG file, found '
                             f'{found!r}')
    for index, truth in enumerate(same):
        if not isinstance(truth, int) or truth not in (0, 1):
            raise ValueError(f'{owner}: {path!r}: truth {index} must be True or False, found {truth!r}')
    return FaceBin([bytes(image) for image in images], [bool(truth) for truth in same])


def image_suffix(image: bytes) -> str | None:
    """Suffix of an encoded image; None if it is neither JPEG nor PNG."""
    return next((suffix for start, suffix in SUFFIXES.items() if image.startswith(start)), None)
