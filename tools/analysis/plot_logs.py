"""Plot training logs: one panel for each key, one line for each run, seeds as mean and band.

    python tools/analysis/plot_logs.py work_dirs/fpl work_dirs/cps --keys mIoU unsup_mean_k --out curves.png
    python tools/analysis/plot_logs.py work_dirs/* --keys mIoU --group --out curves.png
    python tools/analysis/plot_logs.py work_dirs/flexmatch --keys 'unsup_class_share/*' --overlay --out shares.png

A run is a work dir or a `scalars.json` of mmengine. Of a run that was resumed, the later log replaces the earlier one
from its first step on. `--group` takes runs together whose labels differ only in their seed (`cps_seed0`, `cps_seed1`).
`--overlay` draws all keys that a pattern matches into one panel, such as those of all classes.
"""

import argparse
import fnmatch
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from mmssl.utils.errors import one_line
from mmssl.utils.logs import PLACES, is_number, read_run

SEED = r'[_\-./ ]*seed[_\-]?\d+'
Curve = dict[int, float]


def read_curves(path: Path) -> dict[str, Curve]:
    """The curves of one run, its resumed parts joined.

    Raises:
        FileNotFoundError: If there is no log.
        ValueError: If the logs hold nothing.
    """
    log = read_run(path)
    training: dict[str, Curve] = {}
    evaluation: dict[str, Curve] = {}
    for curves, lines in ((training, log.training), (evaluation, log.evaluations)):
        for step, line in lines.items():
            for key, value in line.items():
                if key not in PLACES and is_number(value):
                    curves.setdefault(key, {})[step] = float(value)
    # `time` and `data_time` are in both kinds of lines and mean different things.
    run = {**evaluation, **training}
    if not run:
        raise ValueError(f'{path}: the log holds no value')
    return run


def label_runs(paths: Sequence[Path], labels: Sequence[str] | None) -> list[str]:
    """Names for the legend: those given, or the shortest ends of the paths that tell them apart.

    Raises:
        ValueError: If the number of labels is wrong, or a run is given twice.
    """
    if labels is not None:
        if len(labels) != len(paths):
            raise ValueError(f'--labels: {len(labels)} labels for {len(paths)} runs')
        return list(labels)
    folders = []
    for path in paths:
        folder = path.resolve()
        if folder.is_file():
            # work_dir / time / vis_data / scalars.json
            folder = folder.parents[2] if folder.parent.name == 'vis_data' else folder.parent
        folders.append(folder)
    for depth in range(1, max(len(folder.parts) for folder in folders) + 1):
        names = ['/'.join(folder.parts[-depth:]) for folder in folders]
        if len(set(names)) == len(names):
            return names
    raise ValueError('the same run is given twice; name them with --labels if this is meant')


def match_keys(patterns: Sequence[str], runs: Sequence[dict[str, Curve]]) -> list[str]:
    """The keys that the patterns name, each at least in one run.

    Raises:
        KeyError: If a pattern matches none; the message lists the keys that exist.
    """
    existing = sorted(set().union(*runs))
    keys: list[str] = []
    for pattern in patterns:
        found = [pattern] if pattern in existing else fnmatch.filter(existing, pattern)
        if not found:
            raise KeyError(f'--keys: no run has {pattern!r}; there are: {", ".join(existing)}')
        keys += [key for key in found if key not in keys]
    return keys


def split_panels(patterns: Sequence[str], runs: Sequence[dict[str, Curve]], overlay: bool) -> dict[str, list[str]]:
    """Title and keys of each panel: a key, or with `overlay` all keys that a pattern matches."""
    if not overlay:
        return {key: [key] for key in match_keys(patterns, runs)}
    return {pattern: match_keys([pattern], runs) for pattern in patterns}


def smooth(values: Sequence[float], window: int) -> list[float]:
    """Mean over the last `window` points; points that are not finite do not count."""
    result = []
    for index in range(len(values)):
        part = [v for v in values[max(0, index - window + 1) : index + 1] if math.isfinite(v)]
        result.append(sum(part) / len(part) if part else math.nan)
    return result


def join_group(curves: Sequence[Curve]) -> tuple[list[int], list[float], list[float]]:
    """Mean and standard deviation (of a sample, 0 for a single run) at the steps that all curves have."""
    steps = sorted(set(curves[0]).intersection(*curves[1:]))
    means, deviations = [], []
    for step in steps:
        values = [curve[step] for curve in curves]
        mean = sum(values) / len(values)
        means.append(mean)
        deviations.append(math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1)) if len(values) > 1 else 0)
    return steps, means, deviations


def group_runs(labels: Sequence[str], pattern: str | None) -> dict[str, list[int]]:
    """Indices of the runs in each group: those whose labels are equal without what `pattern` matches.

    Raises:
        ValueError: If the pattern is no regular expression.
    """
    if pattern is None:
        return {label: [index] for index, label in enumerate(labels)}
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise ValueError(f'--group: {pattern!r} is no regular expression: {error}') from None
    groups: dict[str, list[int]] = {}
    for index, label in enumerate(labels):
        groups.setdefault(expression.sub('', label) or label, []).append(index)
    return groups


def plot(args: argparse.Namespace) -> list[str]:
    """Draw the figure.

    Returns:
        One line for each curve: key, label, last value.
    """
    out = Path(args.out)
    if not out.resolve().parent.is_dir():
        raise FileNotFoundError(f'--out: no folder {str(out.parent)!r}')
    # A figure of its own, not pyplot's, needs no display.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    paths = [Path(path) for path in args.runs]
    labels = label_runs(paths, args.labels)
    runs = [read_curves(path) for path in paths]
    panels = split_panels(args.keys, runs, args.overlay)
    groups = group_runs(labels, args.group)
    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(5.2 * columns, 3.6 * rows + 0.3 * bool(args.title)), dpi=args.dpi, layout='constrained')
    FigureCanvasAgg(figure)
    if args.title:
        figure.suptitle(args.title)
    summary = []
    for index, (title, keys) in enumerate(panels.items()):
        axes = figure.add_subplot(rows, columns, index + 1)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel('iteration')
        axes.grid(alpha=0.3)
        lines = [(key, label, members) for label, members in groups.items() for key in keys]
        for number, (key, label, members) in enumerate(lines):
            curves = [runs[i][key] for i in members if key in runs[i]]
            if not curves:
                continue
            steps, means, deviations = join_group(curves)
            if not steps:
                raise ValueError(f'--group: the runs of {label!r} have no step of {key!r} in common')
            color = f'C{number % 10}'
            name = f'{label} ({len(curves)} runs)' if len(curves) > 1 else label
            if len(keys) > 1:
                name = key if len(groups) == 1 and len(curves) == 1 else f'{key}, {name}'
            marker = '.' if len(steps) < 30 else None
            if args.smooth > 1:
                axes.plot(steps, means, color=color, alpha=0.25, linewidth=0.8)
                means, deviations = smooth(means, args.smooth), smooth(deviations, args.smooth)
            axes.plot(steps, means, color=color, marker=marker, linewidth=1.4, label=name)
            if len(curves) > 1:
                low = [m - d for m, d in zip(means, deviations, strict=True)]
                high = [m + d for m, d in zip(means, deviations, strict=True)]
                axes.fill_between(steps, low, high, color=color, alpha=0.2, linewidth=0)
            spread = f' ± {deviations[-1]:.3g}' if len(curves) > 1 else ''
            summary.append(f'{key}: {label if len(keys) > 1 else name}: {means[-1]:.4g}{spread} at {steps[-1]}')
        axes.legend(fontsize=7)
    figure.savefig(out)
    return summary


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog='plot_logs.py'
    )
    parser.add_argument('runs', nargs='+', help='work dirs or scalars.json files')
    parser.add_argument('--keys', nargs='+', required=True, help='what to plot; patterns such as unsup_* are allowed')
    parser.add_argument('--out', required=True, help='picture to write: .png, .pdf, .svg')
    parser.add_argument('--labels', nargs='+', help='names of the runs (default: the ends of their paths)')
    parser.add_argument('--overlay', action='store_true', help='one panel for each of --keys, with all that it matches')
    parser.add_argument('--title', help='title of the figure')
    parser.add_argument('--smooth', type=int, default=1, metavar='N', help='running mean over N logged points')
    parser.add_argument(
        '--group',
        nargs='?',
        const=SEED,
        metavar='REGEX',
        help='draw runs whose labels differ only in what this matches as mean and standard deviation '
        '(without a value: their seed, such as _seed0)',
    )
    parser.add_argument('--dpi', type=int, default=120, help='dots per inch (default: 120)')
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool.

    Returns:
        0, or 2 after an error of the user's.
    """
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.smooth < 1:
        parser.error(f'argument --smooth: must be at least 1, got {args.smooth}')
    try:
        lines = plot(args)
    except (OSError, ValueError, KeyError) as error:
        print(f'plot_logs: error: {one_line(error)}', file=sys.stderr)
        return 2
    print('\n'.join([*lines, f'written: {args.out}']))
    return 0


if __name__ == '__main__':
    sys.exit(main())
