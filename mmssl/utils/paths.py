"""Where the configs of mmssl are, in a checkout and in an installed wheel."""

import difflib
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def config_root() -> Path:
    """Folder of the configs: inside the package, or beside it in a checkout made without symbolic links (Windows)."""
    inside = PACKAGE / 'configs'
    return inside if inside.is_dir() else PACKAGE.parent / 'configs'


def config_path(name: str) -> str:
    """Absolute path of one of mmssl's configs, for ``_base_ = __import__('mmssl').config_path('fpl/....py')``.

    Args:
        name: Path below ``configs/``, with or without ``.py``, such as ``'_base_/methods/fpl.py'``.

    Returns:
        The path of the file.

    Raises:
        FileNotFoundError: If there is no such config; the message lists the names most like it.
    """
    root = config_root()
    known = {path.relative_to(root).as_posix(): path for path in root.rglob('*.py') if '__pycache__' not in path.parts}
    for candidate in (name, f'{name}.py'):
        if candidate in known:
            return str(known[candidate])
    # A wrong folder and a typing error are both common: compare with the whole name and with its last part.
    stem = Path(name).name.removesuffix('.py')
    near = difflib.get_close_matches(f'{name.removesuffix(".py")}.py', known, n=3, cutoff=0.6)
    stems: dict[str, list[str]] = {}
    for path in known:
        stems.setdefault(Path(path).stem, []).append(path)
    for match in difflib.get_close_matches(stem, stems, n=3, cutoff=0.6):
        near += [path for path in stems[match] if path not in near]
    hint = f'did you mean {" or ".join(map(repr, near[:5]))}?' if near else f'the folders are {sorted(_folders(known))}'
    raise FileNotFoundError(f'mmssl has no config {name!r}: {hint}')


def _folders(names: dict[str, Path]) -> set[str]:
    return {name.rpartition('/')[0] for name in names}
