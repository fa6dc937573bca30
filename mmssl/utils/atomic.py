"""Files that are written whole or not at all, whatever ends the process while it writes."""

import os
import re
import socket
import time
from contextlib import suppress
from pathlib import Path

from mmengine.fileio import LocalBackend, register_backend

# Of a process on another machine, nobody can tell whether it still writes; no checkpoint takes a day.
LEFTOVER_AGE = 24 * 3600
LEFTOVER = re.compile(r'\..+\.(?P<pid>\d+)@(?P<host>.+)\.mmssl-tmp')


def write_atomically(path: str | os.PathLike, data: bytes) -> None:
    """Write a file under a temporary name in the same folder, sync it to disk, and rename it.

    A file that is there already keeps its content until the new one is complete; a link keeps pointing to its file.

    Args:
        path: The file; its folder is created if need be.
        data: Its content.

    Raises:
        OSError: If it cannot be written, a full disk included. Nothing is left behind then.
    """
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f'.{path.name}.{os.getpid()}@{socket.gethostname()}.mmssl-tmp')
    try:
        with open(temporary, 'wb') as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # a file system without it, or another operating system
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # else the name may be lost with the power, though the content is on disk
        finally:
            os.close(folder)


def remove_leftovers(folder: str | os.PathLike) -> list[str]:
    """Remove what killed processes left of :func:`write_atomically`, and nothing that another one may still write.

    Args:
        folder: Where to look, not below.

    Returns:
        Names of the removed files.
    """
    removed = []
    for path in sorted(Path(folder).glob('.*.mmssl-tmp')):
        found = LEFTOVER.fullmatch(path.name)
        with suppress(OSError):  # someone else was faster
            if found and _is_left(found, path):
                path.unlink()
                removed.append(path.name)
    return removed


def _is_left(found: re.Match, path: Path) -> bool:
    if found['host'] != socket.gethostname():
        return time.time() - path.stat().st_mtime > LEFTOVER_AGE
    try:
        os.kill(int(found['pid']), 0)  # signal 0 only asks whether the process exists
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


@register_backend('mmssl_atomic', force=True)
class AtomicLocalBackend(LocalBackend):
    """mmengine's backend of local files, with :func:`write_atomically`; its name is ``mmssl_atomic``."""

    def put(self, obj: bytes, filepath: str | Path) -> None:
        """Write bytes."""
        write_atomically(filepath, obj)

    def put_text(self, obj: str, filepath: str | Path, encoding: str = 'utf-8') -> None:
        """Write text."""
        write_atomically(filepath, obj.encode(encoding))
