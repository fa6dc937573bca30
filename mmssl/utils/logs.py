"""Reading mmengine's ``scalars.json``: the logs of one run, its resumed parts joined."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Values of a line that place it instead of measuring something.
PLACES = ('step', 'iter', 'epoch')
Line = dict[str, Any]


@dataclass
class RunLog:
    """The lines of a run, sorted by iteration.

    Attributes:
        training: By iteration.
        evaluations: By iteration, also where the log numbers them by epoch.
    """

    training: dict[int, Line] = field(default_factory=dict)
    evaluations: dict[int, Line] = field(default_factory=dict)


def find_logs(path: Path) -> list[Path]:
    """The log files of one run, oldest first.

    Args:
        path: A log file, a work dir, or the folder of one of its sessions.

    Raises:
        FileNotFoundError: If there is none.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise FileNotFoundError(f'{path}: neither a log file nor a work dir')
    for pattern in ('vis_data/scalars.json', '*/vis_data/scalars.json', 'scalars.json'):
        # Their folders are named by the time at which they began.
        logs = sorted(path.glob(pattern))
        if logs:
            return logs
    raise FileNotFoundError(f'{path}: no vis_data/scalars.json in it or one level below: not the work dir of a run')


def read_lines(path: Path) -> list[Line]:
    """The lines of one log file; a last line that was cut off, as by a kill, is left out.

    Raises:
        ValueError: If another line is no JSON object.
    """
    lines = []
    texts = path.read_text(encoding='utf-8').splitlines()
    for number, text in enumerate(texts, 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except ValueError:
            line = None
        if isinstance(line, dict):
            lines.append(line)
        elif number < len(texts):
            raise ValueError(f'{path}, line {number}: not a JSON object, so this is no scalars.json of mmengine')
    return lines


def is_number(value: Any) -> bool:
    """Whether a value of a line is a measurement."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def read_session(lines: Sequence[Line]) -> RunLog:
    """The lines of one log file by iteration."""
    log, last = RunLog(), 0
    for line in lines:
        step = int(line.get('step', line.get('iter', last)))
        if 'iter' in line or 'lr' in line:
            last = step
            log.training[step] = line
        else:
            # Where evaluations are numbered by epoch, the number is below that of the iteration.
            step = max(step, last)
            log.evaluations[step] = {**log.evaluations.get(step, {}), **line}
    return log


def join_sessions(sessions: Sequence[RunLog]) -> RunLog:
    """One log of several; what a run did twice (after a kill) counts as in the later session.

    Sessions without training (tests of the trained model) are left out if any has some.
    """
    if any(session.training for session in sessions):
        sessions = [session for session in sessions if session.training]
    joined = RunLog()
    for session in sessions:
        first = min((*session.training, *session.evaluations), default=0)
        for whole, part in ((joined.training, session.training), (joined.evaluations, session.evaluations)):
            for step in [step for step in whole if step >= first]:
                del whole[step]
            whole.update(part)
    return RunLog(dict(sorted(joined.training.items())), dict(sorted(joined.evaluations.items())))


def read_run(path: Path) -> RunLog:
    """The log of a run.

    Args:
        path: As for :func:`find_logs`.

    Raises:
        FileNotFoundError: If there is no log.
        ValueError: If a file is none.
    """
    return join_sessions([read_session(read_lines(log)) for log in find_logs(path)])
