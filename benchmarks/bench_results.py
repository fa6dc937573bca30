"""What every benchmark leaves behind: one JSON file with its figures and everything they depend on."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proof_harness import collect
from proof_harness.execute import write_json

REPO = Path(__file__).resolve().parents[1]
FOLDER = REPO / 'benchmarks/results/bench'
KEYS = ('name', 'argv', 'seed', 'date', 'commit', 'dirty', 'machine', 'versions', 'rows', 'details')


def row(what: str, value: float, unit: str, baseline: str = '', baseline_value: float | None = None) -> dict[str, Any]:
    """One line of the table in docs/benchmarks.md.

    Args:
        what: What was measured.
        value: The figure.
        unit: Its unit; the baseline has the same.
        baseline: What it is compared with, measured in the same run.
        baseline_value: The baseline's figure.
    """
    return dict(what=what, value=value, unit=unit, baseline=baseline, baseline_value=baseline_value)


def save(name: str, *, seed: int, threads: int, rows: Sequence[dict[str, Any]], details: dict[str, Any],
         argv: Sequence[str] | None, out: Path | str | None = None) -> Path:
    """Write the results of a benchmark.

    Args:
        name: Name of the benchmark, of its script and of the file.
        seed: The seed of its random numbers.
        threads: Threads that it computed with.
        rows: What goes into the table, see :func:`row`.
        details: All other figures and settings.
        argv: The arguments that its ``main`` was called with; None for those of the process.
        out: The file. Default: ``benchmarks/results/bench/NAME.json``.

    Returns:
        The file.
    """
    load = os.getloadavg() if hasattr(os, 'getloadavg') else None
    path = FOLDER / f'{name}.json' if out is None else Path(out)
    write_json(path, dict(
        name=name, argv=[f'benchmarks/{name}.py', *map(_shown, sys.argv[1:] if argv is None else argv)], seed=seed,
        date=collect.now(), **collect.commit(REPO),
        machine=dict(collect.hardware(), threads=threads, load=load), versions=collect.software(), rows=list(rows),
        details=details))  # yapf: disable
    print(f'wrote {path}')
    return path


def _shown(argument: str) -> str:
    """One argument as it was given, but for the folders of this machine: relative to the checkout, or ``.../name``."""
    option, separator, value = argument.rpartition('=')
    path = Path(value)
    if not path.is_absolute():
        return argument
    inside = path.is_relative_to(REPO)
    return f'{option}{separator}{path.relative_to(REPO) if inside else f".../{path.name}"}'


def read(folder: Path = FOLDER) -> list[dict[str, Any]]:
    """All results there are, by name.

    Raises:
        ValueError: If a file lacks a key.
    """
    records = []
    for path in sorted(folder.glob('*.json')):
        record = json.loads(path.read_text(encoding='utf-8'))
        missing = [key for key in KEYS if key not in record]
        if missing:
            raise ValueError(f'{path} lacks {", ".join(missing)}; run its benchmark again')
        records.append(record)
    return records
