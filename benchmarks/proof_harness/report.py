"""Tables and plots of a grid, made from its result files alone, and the check that what is printed still is true."""

import json
import math
import os
import re
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .collect import session_commits, summarize
from .grid import Grid, differences

Results = dict[str, dict[int, dict[str, Any]]]


def mean_std(values: Sequence[float], digits: int = 2) -> str:
    """``mean ± sample standard deviation``; a single value says so."""
    if not values:
        return '-'
    if len(values) == 1:
        return f'{values[0]:.{digits}f} (1 seed)'
    return f'{statistics.fmean(values):.{digits}f} ± {statistics.stdev(values):.{digits}f}'


def table(grid: Grid) -> str:
    """The grid's table in Markdown, with everything that a reader needs to get the same numbers."""
    results = grid.read_results()

    def summary(key: str) -> Callable[[dict[str, Any]], float]:
        return lambda record: summarize(record['validations'], grid.metric, grid.better)[key]

    columns: list[tuple[str, int, Callable[[dict[str, Any]], float | None]]] = [
        (f'{grid.metric} last', 2, summary('last')), (f'{grid.metric} best', 2, summary('best')),
        ('median of last 3', 2, summary('median_last3'))
    ]
    if grid.criterion:
        columns.append((f'{grid.metric} chosen by {grid.criterion}', 2, lambda record: _chosen(grid, record)))
    for key in grid.extra_metrics:
        columns.append((f'{key} last', _digits(results, key), lambda record, key=key: record['validations'][-1][key]))
    columns += [('minutes', 1, lambda record: record['minutes']),
                ('ms / iter', 0, lambda record: record['ms_per_iter']),
                ('memory (MB)', 0, lambda record: record['gpu_memory_mb'] or record['peak_rss_mb'])]
    lines = ['| ' + ' | '.join(['', *(title for title, _, _ in columns), 'seeds']) + ' |',
             '| --- |' + ' ---: |' * (len(columns) + 1)]
    for row in grid.rows:
        records = list(results[row.name].values())
        cells = [mean_std([get(record) for record in records if get(record) is not None], digits)
                 for _, digits, get in columns]
        seeds = str(len(grid.seeds)) if len(records) == len(grid.seeds) else f'{len(records)} of {len(grid.seeds)}'
        lines.append('| ' + ' | '.join([f'[{row.title}]({_link(grid, row.config)})', *cells, seeds]) + ' |')
    return '\n'.join([f'**{grid.title}**', '', *lines, '', *_footnotes(grid, results)])


def _chosen(grid: Grid, record: dict[str, Any]) -> float:
    """The metric at the first validation with the largest value of the criterion."""
    return max(record['validations'], key=lambda validation: validation[grid.criterion])[grid.metric]


def _digits(results: Results, key: str) -> int:
    """Digits that a metric is shown with: 2 for percentages and the like, 4 for one that stays below 1."""
    values = [abs(record['validations'][-1][key]) for runs in results.values() for record in runs.values()]
    return 4 if values and max(values) < 1 else 2


def _link(grid: Grid, path: str) -> str:
    start = (grid.repo / grid.readme).parent if grid.readme else grid.repo
    return Path(os.path.relpath(grid.repo / path, start)).as_posix()


def _footnotes(grid: Grid, results: Results) -> list[str]:
    records = [record for runs in results.values() for record in runs.values()]
    if not records:
        return [f'No results yet: `python benchmarks/proof.py {grid.name}` makes them.']

    def distinct(values: list[str]) -> str:
        return ', '.join(dict.fromkeys(values))

    machine = distinct([
        f'{r["hardware"]["cpu"]} ({r["hardware"]["cores"]} cores; {r["hardware"]["jobs"]} runs at once, '
        f'{r["hardware"]["threads"] or "all"} threads each)' for r in records
    ])
    commits = distinct([commit[:10] + (' with local changes' if r['dirty'] else '')
                        for r in records for commit in session_commits(r['sessions'])])
    spanning = [f'{r["row"]}-seed{r["seed"]} ({" → ".join(commit[:10] for commit in session_commits(r["sessions"]))})'
                for r in records if len(session_commits(r['sessions'])) > 1]
    versions = distinct(
        [', '.join(f'{name} {version}' for name, version in r['versions'].items() if version) for r in records])
    dates = sorted(r['date'][:10] for r in records)
    iterations = distinct([str(r['validations'][-1]['iter']) for r in records])
    return [
        f'Mean ± sample standard deviation over seeds {", ".join(map(str, grid.seeds))}, {iterations} iterations each. '
        'The last validation is the number to compare; best is the best validation of each run, chosen on the '
        'validation set itself. Minutes: wall clock, validations included. Memory: peak of the training process '
        '(of the GPU where one was used).',
        '',
        f'- Command: `python benchmarks/proof.py {grid.name}`; table: `python benchmarks/proof.py table {grid.name} '
        '--write`',
        f'- Machine: {machine}',
        f'- Date: {dates[0] if dates[0] == dates[-1] else dates[0] + " to " + dates[-1]}; commit: {commits}',
        f'- Versions: {versions}',
        *([f'- Interrupted and continued at another commit: {", ".join(spanning)}'] if spanning else []),
    ]


def _markers(grid: Grid) -> tuple[str, str]:
    return f'<!-- proof:{grid.name} begin -->', f'<!-- proof:{grid.name} end -->'


def _block(grid: Grid) -> str:
    begin, end = _markers(grid)
    return f'{begin}\n{table(grid)}\n{end}'


def write_table(grid: Grid) -> Path:
    """Replace what stands between the grid's two markers in its README.

    Raises:
        ValueError: If the grid names no README, or that has no markers.
        FileNotFoundError: If the README does not exist.
    """
    if not grid.readme:
        raise ValueError(f'benchmarks/grids/{grid.name}.py names no `readme` to write the table to')
    path = grid.repo / grid.readme
    if not path.is_file():
        raise FileNotFoundError(f'{path} (`readme` of benchmarks/grids/{grid.name}.py) does not exist')
    begin, end = _markers(grid)
    text = path.read_text(encoding='utf-8')
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise ValueError(f'{path} must hold the lines {begin} and {end} once each, in this order')
    head, rest = text.split(begin)
    path.write_text(head + _block(grid) + rest.split(end)[1], encoding='utf-8')
    return path


def check(grid: Grid) -> list[str]:
    """Everything in which results, configs and README of a grid disagree.

    Returns:
        One sentence per problem; empty when all is well, also when nothing has run yet.
    """
    results, problems = grid.read_results(), []
    known = {grid.result_path(row, seed) for row in grid.rows for seed in grid.seeds}
    for path in sorted(grid.results.glob('*.json')):
        if path not in known:
            problems.append(f'{path} belongs to no row and seed of benchmarks/grids/{grid.name}.py')
    for row in grid.rows:
        if not results[row.name]:
            continue
        now = row.fingerprint()
        for seed, record in results[row.name].items():
            if record['config_hash'] != now.digest:
                saved = config_path(grid, row.name, record['config_hash'])
                old = json.loads(saved.read_text(encoding='utf-8')) if saved.is_file() else {}
                changes = '; '.join(differences(old, now.content)[:5]) if old else 'the old config was not kept'
                problems.append(f'{grid.result_path(row, seed)}: {row.config} changed after this run ({changes}); '
                                f'run `python benchmarks/proof.py {grid.name}` again')
            given = summarize(record['validations'], grid.metric, grid.better)
            if any(not math.isclose(record['summary'][key], given[key], rel_tol=1e-5) for key in given):
                problems.append(f'{grid.result_path(row, seed)}: its summary is not what its validations give')
    if grid.readme and any(results.values()):
        path = grid.repo / grid.readme
        begin, end = _markers(grid)
        text = path.read_text(encoding='utf-8') if path.is_file() else ''
        found = re.search(f'{re.escape(begin)}.*?{re.escape(end)}', text, re.S)
        if not found or found.group() != _block(grid):
            problems.append(f'{path}: the table of {grid.name} is not what its result files give; '
                            f'run `python benchmarks/proof.py table {grid.name} --write`')
    return problems


def config_path(grid: Grid, row: str, digest: str) -> Path:
    """Where the normalized config of a row's runs is kept."""
    return grid.results / 'configs' / f'{row}-{digest[:12]}.json'


def series(grid: Grid) -> dict[str, dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]]:
    """Mean and standard deviation over seeds, per plotted key and row: (iterations, mean, std).

    A seed whose iterations differ from the first one's (it was logged at others after a resume) is interpolated.
    """
    panels: dict[str, dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]] = {}
    for key in [grid.metric, *grid.curves]:
        rows = {}
        for row, records in grid.read_results().items():
            if key == grid.metric:
                runs = [[(v['iter'], v[key]) for v in record['validations']] for record in records.values()]
            else:
                runs = [record['curves'][key] for record in records.values() if key in record['curves']]
            if not runs:
                continue
            iterations = np.array([iteration for iteration, _ in runs[0]], dtype=float)
            values = np.stack([np.interp(iterations, *np.array(run, dtype=float).T) for run in runs])
            std = values.std(axis=0, ddof=1) if len(runs) > 1 else np.zeros_like(iterations)
            rows[row] = iterations, values.mean(axis=0), std
        if rows:
            panels[key] = rows
    return panels


def plot(grid: Grid) -> Path:
    """Draw the metric and the grid's curves over the iterations: line = mean over seeds, band = standard deviation.

    Raises:
        ValueError: If the grid names no picture.
        FileNotFoundError: If there are no results yet.
    """
    if not grid.plots:
        raise ValueError(f'benchmarks/grids/{grid.name}.py names no `plots` picture to draw')
    panels = series(grid)
    if not panels:
        raise FileNotFoundError(f'no results in {grid.results}; run `python benchmarks/proof.py {grid.name}` first')
    import matplotlib
    matplotlib.use('Agg')
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots(1, len(panels), figsize=(5 * len(panels), 3.6), squeeze=False, layout='constrained')
    for axis, (key, rows) in zip(axes[0], panels.items(), strict=True):
        for index, row in enumerate(grid.rows):
            if row.name not in rows:
                continue
            iterations, mean, std = rows[row.name]
            axis.plot(iterations, mean, color=f'C{index}', label=row.title)
            axis.fill_between(iterations, mean - std, mean + std, color=f'C{index}', alpha=0.2, linewidth=0)
        axis.set(xlabel='iteration', title=key)
        axis.grid(alpha=0.3)
        axis.legend(fontsize='small')
    figure.suptitle(grid.title)
    path = grid.repo / grid.plots
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={'Software': None})
    plt.close(figure)
    return path
