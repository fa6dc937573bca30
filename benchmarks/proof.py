"""Run a named grid of trainings, and make its table and plots from the small result files that the runs leave.

python benchmarks/proof.py NAME [--only ROW ...] [--seeds K ...] [--jobs N] [--data-root PATH] [--dry-run]
                                                     [--allow-dirty]
python benchmarks/proof.py table NAME [--write]      print the table, or put it into the README that the grid names
python benchmarks/proof.py plot NAME                 draw metric and curves over time
python benchmarks/proof.py check [NAME ...]          compare READMEs, configs and results; exit code 1 if they disagree
"""

import argparse
import signal
import sys
from pathlib import Path

from proof_harness import collect, report
from proof_harness.execute import Executor
from proof_harness.grid import Grid, Row, grid_names, load_grid

REPO = Path(__file__).resolve().parents[1]
COMMANDS = ('run', 'table', 'plot', 'check')


def parse_args(argv: list[str]) -> argparse.Namespace:
    """Parse the command line; ``run`` may be left out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--repo', type=Path, help=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest='command', required=True)
    run = commands.add_parser('run', help='train what is missing (the default command)')
    run.add_argument('name', help='name of a file in benchmarks/grids')
    run.add_argument('--only', nargs='+', metavar='ROW', help='names of rows; default: all')
    run.add_argument('--seeds', nargs='+', type=int, metavar='K', help='some of the seeds of the grid; default: all')
    run.add_argument('--jobs', type=int, default=1, help='processes at once; they share the cores equally')
    run.add_argument('--data-root', help="the data; default: the environment variable or default in the grid's configs")
    run.add_argument('--dry-run', action='store_true', help='only say what would be run')
    run.add_argument('--allow-dirty', action='store_true', help='train although the code has uncommitted changes')
    run.add_argument('--poll', type=float, default=1., help=argparse.SUPPRESS)
    table = commands.add_parser('table', help='print the table of a grid')
    table.add_argument('name')
    table.add_argument('--write', action='store_true', help='put it into the README that the grid names')
    plot = commands.add_parser('plot', help='draw the plots of a grid')
    plot.add_argument('name')
    check = commands.add_parser('check', help='compare READMEs, configs and results')
    check.add_argument('names', nargs='*', help='default: all grids')
    for command in (run, table, plot, check):
        command.add_argument('--repo', type=Path, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    if argv and argv[0] not in COMMANDS and not argv[0].startswith('-'):
        argv = ['run', *argv]
    return parser.parse_args(argv)


def _select_rows(grid: Grid, names: list[str] | None) -> list[Row]:
    known = [row.name for row in grid.rows]
    for name in names or []:
        if name not in known:
            raise ValueError(f'--only: {name!r} is no row of {grid.name}; there are: {", ".join(known)}')
    return [row for row in grid.rows if names is None or row.name in names]


def _select_seeds(grid: Grid, seeds: list[int] | None) -> list[int]:
    for seed in seeds or []:
        if seed not in grid.seeds:
            raise ValueError(f'--seeds: {seed} is no seed of {grid.name}; there are: {", ".join(map(str, grid.seeds))}')
    return grid.seeds if seeds is None else seeds


def _run(args: argparse.Namespace, grid: Grid) -> int:
    if args.jobs < 1:
        raise ValueError(f'--jobs: {args.jobs} is no number of processes; 1 or more')
    if args.data_root is not None:
        if not grid.data_root:
            raise ValueError(f'--data-root: benchmarks/grids/{grid.name}.py names no `data_root` variable to set')
        if not Path(args.data_root).is_dir():
            raise FileNotFoundError(f'--data-root: {args.data_root} is no folder')
        args.data_root = str(Path(args.data_root).resolve())
    rows, seeds = _select_rows(grid, args.only), _select_seeds(grid, args.seeds)
    executor = Executor(grid, rows, seeds, args.jobs, args.data_root, args.poll)
    if args.dry_run:
        executor.dry_run()
        return 0
    changed = collect.changed_files(grid.repo)
    if changed and not args.allow_dirty:
        shown = ', '.join(changed[:5]) + (f' and {len(changed) - 5} more' if len(changed) > 5 else '')
        print(f'error: uncommitted changes in {shown}: no commit would say what was measured. Commit them, or pass '
              '--allow-dirty, and the results will carry the note "with local changes"', file=sys.stderr)
        return 2

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        failed = executor.execute()
    except KeyboardInterrupt:
        print('stopped; the same command continues from the last checkpoints', flush=True)
        return 130
    finally:
        signal.signal(signal.SIGTERM, previous)
    for run in failed:
        print(f'FAILED: {run.name}')
    return 1 if failed else 0


def main(argv: list[str] | None = None, repo: Path | None = None) -> int:
    """Do what the command line says.

    Args:
        argv: The command line; default: the process's.
        repo: Root of the repository; default: this file's.

    Returns:
        The exit code.
    """
    args = parse_args(sys.argv[1:] if argv is None else argv)
    repo = (repo or args.repo or REPO).resolve()
    if args.command == 'check':
        names = args.names or grid_names(repo)
        problems = [problem for name in names for problem in report.check(load_grid(name, repo))]
        print('\n'.join(problems) if problems else 'tables, configs and results agree')
        return 1 if problems else 0
    grid = load_grid(args.name, repo)
    if args.command == 'run':
        return _run(args, grid)
    if args.command == 'plot':
        print(f'drew {report.plot(grid)}')
    elif args.write:
        print(f'wrote {report.write_table(grid)}')
    else:
        print(report.table(grid))
    return 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except (ValueError, FileNotFoundError) as error:
        sys.exit(f'error: {error}')
