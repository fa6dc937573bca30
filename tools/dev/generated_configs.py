"""What the scripts that write a folder of configs share: writing, checking, the metafile, and ``_base_``."""

import argparse
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

CONFIGS = Path(__file__).resolve().parents[2] / 'configs'


def bases_of(names: Sequence[str]) -> str:
    """A ``_base_`` list, one file in each line; a single file in one."""
    if len(names) == 1:
        return f"_base_ = '{names[0]}'\n"
    return '_base_ = [\n' + ''.join(f"    '{name}',\n" for name in names) + ']\n'


def metafile(folder: str, collection: str, data: str, techniques: str, paper: str, configs: Sequence[str]) -> str:
    """Text of a folder's metafile.yml.

    Args:
        folder: Below configs.
        collection: Its name.
        data: Names of the data sets, with commas.
        techniques: Names of the training techniques, with commas.
        paper: Title, in quotes where YAML needs them.
        configs: Paths below the folder.
    """
    lines = [
        'Collections:',
        f'  - Name: {collection}',
        '    Metadata:',
        f'      Training Data: [{data}]',
        f'      Training Techniques: [{techniques}]',
        '    Paper:',
        f'      Title: {paper}',
        f'    README: configs/{folder}/README.md',
        'Models:',
    ]
    for path in configs:
        lines += [
            f'  - Name: {Path(path).stem}', f'    In Collection: {collection}', f'    Config: configs/{folder}/{path}'
        ]
    return '\n'.join(lines) + '\n'


def configs_in(folder: str) -> list[str]:
    """Paths below a folder of configs of the files that it has, sorted."""
    root = CONFIGS / folder
    return [path.relative_to(root).as_posix() for path in sorted(root.rglob('*.py'))]


def write_or_check(
    folder: str,
    files: Mapping[str, str],
    by_hand: Collection[str],
    description: str | None,
    argv: Sequence[str] | None = None,
) -> int:
    """What the command of such a script does.

    Args:
        folder: Below configs.
        files: Texts by path below it.
        by_hand: Paths of configs that the script does not write.
        description: Of the command.
        argv: Arguments: ``--check``, or none.

    Returns:
        Exit status: 1 if ``--check`` found a difference.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--check', action='store_true', help='only say which files differ')
    args = parser.parse_args(argv)
    root = CONFIGS / folder
    orphans = [name for name in configs_in(folder) if name not in files and name not in by_hand]
    stale = [name for name, text in files.items()
             if not (root / name).exists() or (root / name).read_text(encoding='utf-8') != text]  # fmt: skip
    if args.check:
        for name in stale + orphans:
            print(f'differs: configs/{folder}/{name}')
        return int(bool(stale or orphans))
    for name in stale:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(files[name], encoding='utf-8')
    print(f'{len(stale)} of {len(files)} files written' + (f'; not from here: {orphans}' if orphans else ''))
    return 0
