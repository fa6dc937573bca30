"""What one finished run leaves behind: its log as numbers, and the machine and software that made them."""

import datetime
import importlib.metadata
import itertools
import os
import platform
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmssl.utils import logs

MAX_POINTS = 100
# What a run is made of, as git's path patterns.
CODE = ('mmssl', 'configs/*.py', 'configs/*.txt', 'tools', 'benchmarks/*.py')
NOT_CURVES = (*logs.PLACES, 'time', 'data_time', 'memory', 'base_lr')
DISTRIBUTIONS = {
    'torch': ('torch', ), 'numpy': ('numpy', ), 'mmengine': ('onedl-mmengine', 'mmengine'),
    'mmcv': ('onedl-mmcv', 'mmcv', 'mmcv-lite'), 'mmseg': ('onedl-mmsegmentation', 'mmsegmentation'),
    'mmpretrain': ('onedl-mmpretrain', 'mmpretrain')
}


@dataclass
class Log:
    """The scalars of a run, all its sessions merged.

    Args:
        validations: One dict per validation: ``iter`` and every metric.
        curves: Logged training scalars by key, as (iteration, value).
        ms_per_iter: Median milliseconds of a training iteration, data loading included.
        gpu_memory_mb: Highest GPU memory that mmengine logged; ``None`` on a CPU.
    """

    validations: list[dict[str, float]]
    curves: dict[str, list[tuple[int, float]]]
    ms_per_iter: float | None
    gpu_memory_mb: float | None


def read_lines(work_dir: Path) -> list[list[dict[str, Any]]]:
    """The lines of every ``scalars.json`` below ``work_dir``, one list per session, oldest first."""
    return [logs.read_lines(path) for path in sorted(work_dir.glob('*/vis_data/scalars.json'))]


def read_scalars(work_dir: Path, metric: str) -> Log:
    """Merge the logs of all sessions of a run; an iteration trained twice (after a kill) counts as in the later one.

    Args:
        work_dir: Work dir of the run.
        metric: Key by which a line is known to be a validation's.
    """
    log = logs.join_sessions([logs.read_session(lines) for lines in read_lines(work_dir)])
    validations = [{'iter': iteration, **_values(line)} for iteration, line in log.evaluations.items()
                   if metric in line]
    curves: dict[str, list[tuple[int, float]]] = {}
    for iteration, line in log.training.items():
        for key, value in _values(line).items():
            curves.setdefault(key, []).append((iteration, value))
    times = [line['time'] for line in log.training.values() if 'time' in line]
    memory = [line['memory'] for line in log.training.values() if line.get('memory')]
    return Log(validations, curves, round(1000 * statistics.median(times), 2) if times else None,
               max(memory, default=None))


def _values(line: dict[str, Any]) -> dict[str, float]:
    """What one line measures."""
    return {key: value for key, value in line.items() if key not in NOT_CURVES and logs.is_number(value)}


def thin(points: Sequence[tuple[int, float]], limit: int = MAX_POINTS) -> list[list[float]]:
    """Average neighbors until at most ``limit`` points remain, each at the last iteration of its bin."""
    if len(points) <= limit:
        return [list(point) for point in points]
    edges = [round(i * len(points) / limit) for i in range(limit + 1)]
    bins = [points[start:stop] for start, stop in itertools.pairwise(edges)]
    return [[part[-1][0], sum(value for _, value in part) / len(part)] for part in bins]


def summarize(validations: Sequence[dict[str, float]], metric: str, better: str) -> dict[str, float]:
    """Last, best (the first of equals) and median of the last three values of ``metric``."""
    values = [validation[metric] for validation in validations]
    best = max(values) if better == 'higher' else min(values)
    return dict(
        last=values[-1], best=best, best_iter=validations[values.index(best)]['iter'],
        median_last3=statistics.median(values[-3:]))


def software() -> dict[str, str | None]:
    """Versions of Python and of the libraries that training uses (``None`` = not installed), without importing them."""
    versions: dict[str, str | None] = {'python': platform.python_version()}
    for name, distributions in DISTRIBUTIONS.items():
        versions[name] = None
        for distribution in distributions:
            try:
                version = importlib.metadata.version(distribution)
            except importlib.metadata.PackageNotFoundError:
                continue
            versions[name] = version if distribution == name else f'{version} ({distribution})'
            break
    return versions


def now() -> str:
    """Date and time, UTC."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec='seconds')


def hardware() -> dict[str, Any]:
    """Name of the processor, and the cores that this process may use."""
    cpu = platform.processor() or platform.machine()
    info = Path('/proc/cpuinfo')
    if info.is_file():
        lines = info.read_text(encoding='utf-8').splitlines()
        cpu = next((line.split(':', 1)[1].strip() for line in lines if line.startswith('model name')), cpu)
    return dict(cpu=cpu, cores=os.cpu_count())


def _git(repo: Path, *args: str) -> str | None:
    process = subprocess.run(['git', '-C', str(repo), *args], capture_output=True, text=True, check=False)
    return process.stdout.rstrip() if process.returncode == 0 else None


def changed_files(repo: Path) -> list[str]:
    """Files that can change a run and are not as in the commit, new ones included; none where there is no git."""
    status = _git(repo, 'status', '--porcelain', '--untracked-files=all', '--', *CODE)
    return [line[3:] for line in (status or '').splitlines()]


def session_commits(sessions: Sequence[dict[str, Any]]) -> list[str]:
    """The commits that a run's sessions were trained at, in order, equal neighbors once."""
    return [key for key, _ in itertools.groupby(session['commit'] for session in sessions)]


def commit(repo: Path) -> dict[str, Any]:
    """The commit of the code, and whether files that can change a run differ from it."""
    revision = _git(repo, 'rev-parse', 'HEAD')
    return dict(commit=revision or 'unknown', dirty=bool(changed_files(repo)) if revision else None)
