"""One run at a time in a work dir, and no process of a run that outlives its launcher."""

import errno
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

LOCK = '.lock'
# Open files of the locks that this process holds, by path.
_held: dict[str, Any] = {}


def claim_work_dir(work_dir: str) -> None:
    """Create the work dir and refuse it if another run that is still alive writes there.

    The lock ends with the process, however it ends, so a killed run leaves none behind. Where the file system knows no
    locks there is none.

    Args:
        work_dir: Path of the folder.

    Raises:
        OSError: If it cannot be created or written.
        ValueError: If another process trains there.
    """
    path = Path(work_dir) / LOCK
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open('a+', encoding='utf-8')
    except OSError as error:
        raise OSError(f'work_dir: {work_dir!r} cannot be written ({error}); choose another one with --work-dir') from (
            error)
    key = str(path.resolve())
    if fcntl is None or key in _held:
        file.close()
        return
    try:
        # A POSIX lock: unlike that of flock(), no forked worker of a data loader holds it on.
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.seek(0)
        owner = file.read().strip()
        file.close()
        if error.errno in (errno.EACCES, errno.EAGAIN):
            raise ValueError(
                f'work_dir: another run is training in {work_dir!r} (process {owner or "unknown"}), and both would '
                "overwrite each other's checkpoints: wait for its end or stop it, or name another folder with "
                '--work-dir') from error
        return
    file.truncate(0)
    file.write(f'{os.getpid()} on {os.uname().nodename}\n')
    file.flush()
    _held[key] = file


def end_with_launcher(interval: float = 2.0) -> None:
    """End this process soon after its parent has died, if that is ``torchrun``.

    A killed launcher cannot stop its workers. They would train on unseen, beside the run that the user resumes.

    Args:
        interval: Seconds between two looks, > 0.
    """
    if 'TORCHELASTIC_RUN_ID' not in os.environ:
        return
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(interval)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name='end_with_launcher', daemon=True).start()
