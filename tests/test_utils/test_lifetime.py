"""One run at a time in a work dir, and workers that end with their launcher."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mmssl.utils.lifetime import _held, claim_work_dir, end_with_launcher


def forked(action: Callable[[], None]) -> int:
    """Start a process that does ``action`` and then waits to be killed; its id."""
    pid = os.fork()
    if pid == 0:
        try:
            action()
            time.sleep(60)
        finally:
            os._exit(1)
    return pid


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def ended(pid: int) -> bool:
    """Whether a process that may be nobody's child has ended."""
    try:
        return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] == 'Z'
    except FileNotFoundError:
        return True


def test_a_second_run_in_a_work_dir_is_refused_while_the_first_is_alive(tmp_path: Path) -> None:
    folder = str(tmp_path / 'new' / 'run')
    ready = tmp_path / 'ready'

    def train() -> None:
        claim_work_dir(folder)
        if os.fork() == 0:  # a worker of the data loader, which outlives a killed run for some seconds
            time.sleep(3)
            os._exit(0)
        ready.touch()

    pid = forked(train)
    until(ready.exists)
    message = rf"work_dir: another run is training in '.*run' \(process {pid} on .*--work-dir"
    with pytest.raises(ValueError, match=message):
        claim_work_dir(folder)
    claim_work_dir(str(tmp_path / 'other'))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    claim_work_dir(folder)
    claim_work_dir(folder)  # the same run
    assert (Path(folder) / '.lock').read_text().startswith(f'{os.getpid()} on ')
    for file in _held.values():
        file.close()
    _held.clear()


def test_a_work_dir_that_cannot_be_written_names_the_key(tmp_path: Path) -> None:
    (tmp_path / 'file').touch()
    for folder in (tmp_path / 'file', tmp_path / 'file' / 'run', Path('/proc/run')):
        with pytest.raises(OSError, match=r"work_dir: '.*' cannot be written .*--work-dir"):
            claim_work_dir(str(folder))


@pytest.mark.skipif(not Path('/proc/self/stat').exists(), reason='reads /proc')
@pytest.mark.parametrize('launched', [True, False])
def test_workers_end_with_their_launcher_and_with_no_other_parent(tmp_path: Path, monkeypatch, launched: bool) -> None:
    monkeypatch.delenv('TORCHELASTIC_RUN_ID', raising=False)
    if launched:
        monkeypatch.setenv('TORCHELASTIC_RUN_ID', 'none')
    name = tmp_path / 'worker'

    def launcher() -> None:
        worker = forked(lambda: end_with_launcher(0.05))
        name.with_suffix('.tmp').write_text(str(worker))
        name.with_suffix('.tmp').rename(name)

    pid = forked(launcher)
    until(name.exists)
    worker = int(name.read_text())
    time.sleep(0.3)
    assert not ended(worker)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    if launched:
        until(lambda: ended(worker))
    else:
        time.sleep(0.3)
        assert not ended(worker)
        os.kill(worker, signal.SIGKILL)
