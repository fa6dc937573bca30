"""Check a config and all of its data before training: what is wrong, class histograms, batch, memory.

    python tools/check_data.py CONFIG [--cfg-options KEY=VALUE ...] [--json FILE] [--max-files N] [--gpus N]

Exit code: 0 without errors, 1 if the check found some (all are listed), 2 if the config itself could not be read.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from mmengine.utils import ProgressBar

from mmssl.utils.checks import full_check
from mmssl.utils.cli import USER_ERRORS, OptionsAction, read_config
from mmssl.utils.errors import one_line


def progress(indices: Sequence[int], title: str) -> Iterator[int]:
    """Go through `indices` with a progress bar and the remaining time on stderr; one line if that is a file."""
    print(f'{title}: {len(indices)}', file=sys.stderr)
    if not indices or not sys.stderr.isatty():
        yield from indices
        return
    bar = ProgressBar(len(indices), bar_width=30, file=sys.stderr)
    # Each update writes to the terminal, which for many small files would take longer than reading them.
    step, last = max(1, len(indices) // 100), 0
    for number, index in enumerate(indices, 1):
        yield index
        if number % step == 0 or number == len(indices):
            bar.update(number - last)
            last = number
    print(file=sys.stderr)


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog='check_data.py'
    )
    parser.add_argument('config', help='path of the config')
    parser.add_argument('--cfg-options', nargs='+', action=OptionsAction, metavar='KEY=VALUE', help='override settings')
    parser.add_argument('--json', metavar='FILE', help='write the report to this file as well')
    parser.add_argument(
        '--max-files', type=int, metavar='N', help='read at most N files of each data set, spread evenly (default: all)'
    )
    parser.add_argument('--gpus', type=int, default=1, metavar='N', help='processes of the planned run (default: 1)')
    parser.add_argument('--no-memory', action='store_true', help='do not build the model to estimate its memory')
    parser.add_argument('--debug', action='store_true', help='show the traceback of an error in the config')
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool.

    Returns:
        0 without errors in the data, 1 with some, 2 if the config could not be read.
    """
    parser = build_parser()
    args = parser.parse_args(argv)
    for name in ('max_files', 'gpus'):
        if getattr(args, name) is not None and getattr(args, name) < 1:
            parser.error(f'argument --{name.replace("_", "-")}: must be at least 1, got {getattr(args, name)}')
    try:
        cfg = read_config(args.config, args.cfg_options)
        if args.json is not None and not Path(args.json).resolve().parent.is_dir():
            raise FileNotFoundError(f'--json: no folder {str(Path(args.json).parent)!r}')
    except USER_ERRORS as error:
        if args.debug:
            raise
        print(f'check_data: error: {one_line(error)}', file=sys.stderr)
        return 2
    report = full_check(cfg, args.max_files, args.gpus, progress, memory=not args.no_memory)
    print(report.to_text())
    if args.json is not None:
        Path(args.json).write_text(json.dumps(report.to_dict(), indent=2) + '\n', encoding='utf-8')
    return 1 if report.errors else 0


if __name__ == '__main__':
    sys.exit(main())
