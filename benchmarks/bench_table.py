"""Make the table of docs/benchmarks.md from the files that the benchmarks wrote.

python benchmarks/bench_table.py             print it
python benchmarks/bench_table.py --write     put it into docs/benchmarks.md
python benchmarks/bench_table.py --check     exit code 1 if the page and the files disagree
"""

import argparse
import shlex
import sys
from pathlib import Path
from typing import Any

import bench_results

PAGE = bench_results.REPO / 'docs/benchmarks.md'
BEGIN, END = '<!-- bench begin -->', '<!-- bench end -->'


def number(value: float) -> str:
    """Three significant digits, never as a power of ten."""
    return f'{value:,.0f}' if abs(value) >= 100 else f'{value:#.3g}'


def section(record: dict[str, Any]) -> str:
    """Table of one benchmark, with what its figures depend on."""
    lines = [f'## {record["name"]}', '', '| what | measured | baseline of the same run | ratio |',
             '| --- | ---: | ---: | ---: |']
    for entry in record['rows']:
        base = entry['baseline_value']
        compared = '' if base is None else f'{entry["baseline"]}: {number(base)} {entry["unit"]}'
        ratio = '' if not base else number(entry['value'] / base)
        lines.append(f'| {entry["what"]} | {number(entry["value"])} {entry["unit"]} | {compared} | {ratio} |')
    machine = record['machine']
    load = f', load {machine["load"][0]:.1f}' if machine['load'] else ''
    versions = ', '.join(f'{name} {version}' for name, version in record['versions'].items() if version)
    changed = ' with local changes' if record['dirty'] else ''
    command = 'not recorded; `make bench` measures again'
    if record['argv'] is not None:
        command = f'`{shlex.join(["python", *record["argv"]])}`'
    return '\n'.join([
        *lines, '', f'- Command: {command}; seed {record["seed"]}',
        f'- Machine: {machine["cpu"]} ({machine["cores"]} cores, {machine["threads"]} threads used{load})',
        f'- Date: {record["date"][:10]}; commit: {record["commit"][:10]}{changed}', f'- Versions: {versions}'
    ])


def block(records: list[dict[str, Any]]) -> str:
    """What stands between the markers, these included."""
    body = '\n\n'.join(map(section, records)) or 'Nothing measured yet: `make bench` does it.'
    return f'{BEGIN}\n{body}\n{END}'


def split_page(text: str, page: Path) -> tuple[str, str]:
    """What is before the markers and what after.

    Raises:
        ValueError: If the page does not have both markers once.
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError(f'{page} must hold the lines {BEGIN} and {END} once each, in this order')
    return text.split(BEGIN)[0], text.split(END)[1]


def main(argv: list[str] | None = None, folder: Path = bench_results.FOLDER, page: Path = PAGE) -> int:
    """Do what the command line says.

    Args:
        argv: The command line; default: the process's.
        folder: Where the benchmarks' files are.
        page: The page.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument('--write', action='store_true', help='write the page')
    what.add_argument('--check', action='store_true', help='compare the page with the files')
    args = parser.parse_args(argv)
    made = block(bench_results.read(folder))
    if not args.write and not args.check:
        print(made)
        return 0
    text = page.read_text(encoding='utf-8')
    before, after = split_page(text, page)
    if args.check:
        agree = text == before + made + after
        print(f'{page} and {folder} ' + ('agree' if agree else
                                         'disagree: run `python benchmarks/bench_table.py --write`'))
        return 0 if agree else 1
    page.write_text(before + made + after, encoding='utf-8')
    print(f'wrote {page}')
    return 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except (ValueError, FileNotFoundError) as error:
        sys.exit(f'error: {error}')
