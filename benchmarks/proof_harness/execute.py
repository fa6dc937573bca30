"""Run a grid: each (row, seed) in a process of its own, what is done skipped, what was interrupted continued."""

import fcntl
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from . import collect
from .grid import Fingerprint, Grid, Row
from .report import config_path

TAIL = 25  # lines of a failed run's log that are printed


@dataclass
class Run:
    """One row with one seed.

    Args:
        row: What is trained.
        seed: Value of ``randomness.seed``.
        fingerprint: The row's config today.
        work_dir: Named by the config's hash too, so that a run is never continued under another config.
    """

    row: Row
    seed: int
    fingerprint: Fingerprint
    work_dir: Path = field(init=False)
    process: subprocess.Popen | None = None
    lock: IO[str] | None = None
    started: float = 0.
    first_step: tuple[float, int] | None = None

    def __post_init__(self) -> None:
        self.work_dir = self.row.grid.work_root / self.name / self.fingerprint.digest[:12]

    @property
    def name(self) -> str:
        """What this run is called in messages and file names."""
        return f'{self.row.name}-seed{self.seed}'

    @property
    def result(self) -> Path:
        """Where its result file belongs."""
        return self.row.grid.result_path(self.row, self.seed)

    def state(self) -> str:
        """``done``, ``interrupted`` (has a checkpoint), ``stale`` (done under another config) or ``to do``."""
        if self.result.is_file():
            record = json.loads(self.result.read_text(encoding='utf-8'))
            if record['config_hash'] == self.fingerprint.digest:
                return 'done'
        if (self.work_dir / 'last_checkpoint').is_file():
            return 'interrupted'
        return 'stale' if self.result.is_file() else 'to do'

    def command(self) -> list[str]:
        """The training command, with ``--resume`` where there is something to continue."""
        repo = self.row.grid.repo
        options = [f'{key}={_option(value)}' for key, value in flatten(self.row.cfg_options).items()]
        command = [sys.executable, str(repo / 'tools/train.py'), self.row.config, '--work-dir', str(self.work_dir)]
        if (self.work_dir / 'last_checkpoint').is_file():
            command.append('--resume')
        seeds = [f'{key}={self.seed}' for key in ('randomness.seed', *self.row.grid.seed_keys)]
        return [*command, '--cfg-options', *seeds, *options]

    def sessions(self) -> list[dict[str, Any]]:
        """Start, duration, memory and commit of each process that worked on this run."""
        path = self.work_dir / 'sessions.json'
        return json.loads(path.read_text(encoding='utf-8')) if path.is_file() else []

    def progress(self) -> tuple[int, int | None]:
        """Iterations (epochs of an epoch-based loop) done and wanted."""
        loop = self.fingerprint.content.get('train_cfg') or {}
        key, total = ('step', loop.get('max_iters')) if loop.get('max_iters') else ('epoch', loop.get('max_epochs'))
        sessions = collect.read_lines(self.work_dir)
        return max((int(line[key]) for line in (sessions[-1] if sessions else []) if line.get(key)), default=0), total


def flatten(options: dict[str, Any], prefix: str = '') -> dict[str, Any]:
    """Turn nested dicts into dotted keys, which is all that ``--cfg-options`` knows."""
    flat: dict[str, Any] = {}
    for key, value in options.items():
        flat.update(flatten(value, f'{prefix}{key}.') if isinstance(value, dict) and value else {prefix + key: value})
    return flat


def _option(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        inner = ','.join(_option(entry) for entry in value)
        return f'[{inner}]' if isinstance(value, list) else f'({inner})'
    return str(value)


def write_json(path: Path, data: Any) -> None:
    """Write a JSON file in one step, one top-level entry a line, so that diffs stay readable."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(data, dict):
        text = '{\n' + ',\n'.join(f'{json.dumps(key)}: {json.dumps(value)}' for key, value in data.items()) + '\n}\n'
    else:
        text = json.dumps(data) + '\n'
    temporary = path.with_name(f'{path.name}.{os.getpid()}.tmp')
    temporary.write_text(text, encoding='utf-8')
    os.replace(temporary, path)


class Executor:
    """Runs what a grid still lacks, ``jobs`` processes at a time.

    Args:
        grid: The grid.
        rows: Which of its rows.
        seeds: Which of its seeds.
        jobs: Processes at once; with more than one, each gets an equal share of the cores.
        data_root: Where the data is; ``None`` leaves it to the environment and the configs.
        poll: Seconds between two looks at the processes.
        interval: Seconds between two lines of progress where there is no terminal to redraw one on.
    """

    def __init__(self, grid: Grid, rows: list[Row], seeds: list[int], jobs: int, data_root: str | None,
                 poll: float = 1., interval: float = 60.) -> None:
        self.grid, self.jobs, self.poll, self.interval = grid, jobs, poll, interval
        fingerprints = {row.name: row.fingerprint() for row in rows}
        # Seeds outside, rows inside: an early stop leaves whole comparisons, not one finished row.
        self.runs = [Run(row, seed, fingerprints[row.name]) for seed in seeds for row in rows]
        self.threads = max(1, (os.cpu_count() or 1) // jobs) if jobs > 1 else None
        self.environment = dict(os.environ)
        python_path = [str(grid.repo), os.environ.get('PYTHONPATH', '')]
        self.environment['PYTHONPATH'] = os.pathsep.join(filter(None, python_path))
        if self.threads:
            for variable in ('OMP_NUM_THREADS', 'MKL_NUM_THREADS'):
                self.environment[variable] = str(self.threads)
        if data_root is not None:
            self.environment[self.grid.data_root['env']] = data_root
        self.printed = 0.

    def dry_run(self) -> None:
        """Say what would be run."""
        for run in self.runs:
            state = run.state()
            print(f'{run.name}: {state}' + ('' if state == 'done' else f'\n    {shlex.join(run.command())}'))

    def execute(self) -> list[Run]:
        """Run everything that is not done.

        Returns:
            The runs that failed.
        """
        queue = [run for run in self.runs if run.state() != 'done']
        print(f'{self.grid.name}: {len(self.runs)} runs, {len(self.runs) - len(queue)} already done', flush=True)
        active: list[Run] = []
        failed: list[Run] = []
        try:
            while queue or active:
                while queue and len(active) < self.jobs:
                    run = queue.pop(0)
                    if self._start(run):
                        active.append(run)
                    else:
                        failed.append(run)
                time.sleep(self.poll)
                for run in list(active):
                    if self._finished(run):
                        active.remove(run)
                        if not self._record(run):
                            failed.append(run)
                self._show(active, queue)
        finally:
            self._stop(active)
        return failed

    def _start(self, run: Run) -> bool:
        run.work_dir.mkdir(parents=True, exist_ok=True)
        run.lock = open(run.work_dir / 'lock', 'w', encoding='utf-8')  # noqa: SIM115 (held as long as the run)
        try:
            # The training process inherits the lock, so it holds even when this process was killed and that one not.
            fcntl.flock(run.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print(f'{run.name}: another process is training it in {run.work_dir}', flush=True)
            run.lock.close()
            return False
        if not (run.work_dir / 'last_checkpoint').is_file():
            # Killed while it wrote its first checkpoint: perhaps damaged, and in the way of a new start.
            for path in run.work_dir.glob('*.pth'):
                path.rename(path.with_suffix('.pth.orphan'))
        command = run.command()
        self._say(f'{run.name}: {"continues" if "--resume" in command else "starts"}')
        with open(run.work_dir / 'train.log', 'a', encoding='utf-8') as log:
            log.write(f'$ {shlex.join(command)}\n')
            log.flush()
            run.process = subprocess.Popen(
                command, cwd=self.grid.repo, env=self.environment, stdout=log, stderr=subprocess.STDOUT,
                pass_fds=[run.lock.fileno()], start_new_session=True)
        run.started, run.first_step = time.time(), None
        session = dict(start=collect.now(), seconds=0., peak_rss_mb=None, **collect.commit(self.grid.repo))
        commits = collect.session_commits(run.sessions())
        if commits and commits[-1] != session['commit']:
            self._say(f'{run.name}: note: was begun at commit {commits[-1][:10]} and goes on at '
                      f'{session["commit"][:10]}; the table will say so')
        write_json(run.work_dir / 'sessions.json', [*run.sessions(), session])
        return True

    def _finished(self, run: Run) -> bool:
        pid, status, usage = os.wait4(run.process.pid, os.WNOHANG)
        sessions = run.sessions()
        seconds = time.time() - run.started
        if pid:
            run.process.returncode = os.waitstatus_to_exitcode(status)
            scale = 1024**2 if sys.platform == 'darwin' else 1024
            sessions[-1]['peak_rss_mb'] = round(usage.ru_maxrss / scale, 1)
        elif seconds - sessions[-1]['seconds'] < 5:
            return False
        # Also while it runs: whoever kills everything still leaves the time that was spent.
        sessions[-1]['seconds'] = round(seconds, 2)
        write_json(run.work_dir / 'sessions.json', sessions)
        return bool(pid)

    def _record(self, run: Run) -> bool:
        run.lock.close()
        metric = self.grid.metric
        log = collect.read_scalars(run.work_dir, metric)
        problem = None
        if run.process.returncode != 0:
            problem = f'failed with exit code {run.process.returncode}'
        elif not log.validations:
            problem = f'finished, but its log has no validation with the metric {metric!r}'
        if problem:
            tail = (run.work_dir / 'train.log').read_text(encoding='utf-8', errors='replace').splitlines()[-TAIL:]
            self._say(f'{run.name}: {problem}; end of {run.work_dir / "train.log"}:\n    ' + '\n    '.join(tail))
            return False
        sessions = run.sessions()
        validations = [{key: _round(value) for key, value in entry.items()} for entry in log.validations]
        record = dict(
            grid=self.grid.name, row=run.row.name, seed=run.seed, config=run.row.config,
            cfg_options=run.row.cfg_options, config_hash=run.fingerprint.digest, commit=sessions[-1]['commit'],
            dirty=any(session['dirty'] for session in sessions), date=collect.now(), versions=collect.software(),
            hardware=dict(collect.hardware(), threads=self.threads or _threads(), jobs=self.jobs),
            summary=collect.summarize(validations, metric, self.grid.better),
            minutes=round(sum(session['seconds'] for session in sessions) / 60, 3), ms_per_iter=log.ms_per_iter,
            peak_rss_mb=max((s['peak_rss_mb'] for s in sessions if s['peak_rss_mb']), default=None),
            gpu_memory_mb=log.gpu_memory_mb, sessions=sessions,
            validations=validations,
            curves={key: [[int(i), _round(value)] for i, value in collect.thin(points)]
                    for key, points in log.curves.items()})
        write_json(config_path(self.grid, run.row.name, run.fingerprint.digest), run.fingerprint.content)
        write_json(run.result, record)
        self._say(f'{run.name}: {metric} last {record["summary"]["last"]:.2f}, best {record["summary"]["best"]:.2f}, '
                  f'{record["minutes"]:.1f} min')
        return True

    def _stop(self, active: list[Run]) -> None:
        for run in active:
            os.killpg(run.process.pid, signal.SIGTERM)
        for run in active:
            deadline = time.time() + 10
            while not self._finished(run):
                if time.time() > deadline:
                    os.killpg(run.process.pid, signal.SIGKILL)
                time.sleep(0.05)

    def _say(self, text: str) -> None:
        print(f'\r\033[K{text}' if sys.stdout.isatty() else text, flush=True)

    def _show(self, active: list[Run], queue: list[Run]) -> None:
        """Print where the runs are, and how long the rest takes if what waits is as fast as what is known."""
        interval = 1. if sys.stdout.isatty() else self.interval
        if not active or time.time() - self.printed < max(interval, self.poll):
            return
        self.printed = time.time()
        parts, remaining, whole = [], [], {}
        for run in active:
            done, total = run.progress()
            if done and run.first_step is None:
                run.first_step = (time.time(), done)
            left = None
            if total and run.first_step and done > run.first_step[1]:
                pace = (time.time() - run.first_step[0]) / (done - run.first_step[1])
                left, whole[run.row.name] = pace * (total - done), pace * total
            remaining.append(left)
            parts.append(f'{run.name} {_bar(done, total)} {done}/{total or "?"} ({_duration(left)} left)')
        for name, records in self.grid.read_results().items():
            if records:
                whole[name] = 60 * sum(record['minutes'] for record in records.values()) / len(records)
        known = None not in remaining and bool(whole)
        if known:
            typical = sum(whole.values()) / len(whole)
            waiting = sum(whole.get(run.row.name, typical) for run in queue)
            rest = _duration((sum(remaining) + waiting) / min(self.jobs, len(active) + len(queue)))
        line = f'{", ".join(parts)}; {len(queue)} waiting; all done in about {rest if known else "?"}'
        print(f'\r\033[K{line}' if sys.stdout.isatty() else line, end='' if sys.stdout.isatty() else '\n', flush=True)


def _bar(done: int, total: int | None, width: int = 20) -> str:
    filled = width * done // total if total else 0
    return f'[{"#" * filled}{"." * (width - filled)}]'


def _threads() -> int | None:
    value = os.environ.get('OMP_NUM_THREADS', '')
    return int(value) if value.isdigit() else None


def _round(value: float) -> float:
    return float(f'{value:.6g}') if isinstance(value, float) else value


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return '?'
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f'{hours}:{minutes:02}:{seconds:02}'
