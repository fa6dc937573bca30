"""A grid of runs: rows (a config each) times seeds, read from ``benchmarks/grids/NAME.py``."""

import copy
import hashlib
import json
import os
import re
import runpy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mmengine.config import Config

# What says where, how visibly or from where a run goes on, but not what is trained.
NOT_TRAINED = ('work_dir', 'launcher', 'local_rank', 'resume', 'log_level', 'visualizer', 'vis_backends')
GRID_KEYS = (
    'base', 'config', 'title', 'rows', 'seeds', 'seed_keys', 'metric', 'better', 'extra_metrics', 'criterion', 'curves',
    'data_root', 'path_variables', 'readme', 'plots',
)  # yapf: disable
ROW_KEYS = ('name', 'title', 'config', 'cfg_options')
DATA_ROOT = '<data_root>'


@dataclass(frozen=True)
class Fingerprint:
    """What a run trains, without the machine it runs on.

    Args:
        content: The fully resolved config without seed, work dir and machine paths, and a hash of every list file of
            this repository that it names.
        digest: SHA-256 of ``content``.
    """

    content: dict[str, Any]
    digest: str


@dataclass
class Row:
    """One line of the table: a config, and what the grid changes in it.

    Args:
        name: Part of file names.
        title: What the table calls it.
        config: Path relative to the repository.
        cfg_options: Dotted keys and values, as for ``--cfg-options``.
        grid: The grid that it belongs to.
    """

    name: str
    title: str
    config: str
    cfg_options: dict[str, Any]
    grid: 'Grid' = field(repr=False)

    def resolve(self) -> Config:
        """The config with this row's options, as a training process would see it (custom imports aside)."""
        config = Config.fromfile(self.grid.repo / self.config, import_custom_modules=False)
        config.merge_from_dict(copy.deepcopy(self.cfg_options))
        return config

    def fingerprint(self) -> Fingerprint:
        """Hash what this row trains today."""
        variable = (self.grid.data_root or {}).get('env')
        elsewhere = {name: f'<{name}>' for name in self.grid.path_variables}
        with _environment({**elsewhere, variable: DATA_ROOT} if variable else elsewhere):
            content = normalize(self.resolve().to_dict(), self.grid.repo)
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        return Fingerprint(content, digest)


@dataclass
class Grid:
    """Rows times seeds, and what is reported about them.

    A file may say two things more: ``base``, the name of a grid whose fields it has unless it states them itself, and
    ``config``, the path of the rows that state none, with ``{name}`` for that of the row.

    Args:
        name: Name of the file, without ``.py``.
        repo: Root of the repository.
        title: Caption of the table and the plots.
        rows: The rows, in the table's order.
        seeds: Values of ``randomness.seed``.
        metric: Key of the validation metric that decides.
        seed_keys: Further config keys that get a run's seed, such as that of the choice of labels.
        better: ``'higher'`` or ``'lower'``.
        extra_metrics: Further validation metrics, of which the last value is tabled.
        criterion: Validation metric, the higher the better, that chooses a checkpoint without labels of the data that
            ``metric`` is measured on; ``metric`` at its best validation is tabled.
        curves: Keys of logged scalars to plot over time.
        data_root: ``dict(env=..., default=...)``: the environment variable by which the configs find the data.
        path_variables: Further environment variables by which the configs find files; what they say is not trained.
        readme: File that carries the table, relative to the repository.
        plots: Picture to draw, relative to the repository.
        results: Folder of the result files. Default: ``benchmarks/results/NAME``.
        work_root: Folder of the work dirs. Default: ``work_dirs/proof/NAME``.
    """

    name: str
    repo: Path
    title: str
    rows: list[Row]
    seeds: list[int]
    metric: str
    better: str = 'higher'
    seed_keys: list[str] = field(default_factory=list)
    extra_metrics: list[str] = field(default_factory=list)
    criterion: str | None = None
    curves: list[str] = field(default_factory=list)
    data_root: dict[str, str] | None = None
    path_variables: list[str] = field(default_factory=list)
    readme: str | None = None
    plots: str | None = None
    results: Path | None = None
    work_root: Path | None = None

    def __post_init__(self) -> None:
        self.results = self.results or self.repo / 'benchmarks/results' / self.name
        self.work_root = self.work_root or self.repo / 'work_dirs/proof' / self.name

    def result_path(self, row: Row, seed: int) -> Path:
        """Where the result of one run is written."""
        return self.results / f'{row.name}-seed{seed}.json'

    def read_results(self) -> dict[str, dict[int, dict[str, Any]]]:
        """The results there are, by row name and seed, in the grid's order."""
        found: dict[str, dict[int, dict[str, Any]]] = {}
        for row in self.rows:
            paths = {seed: self.result_path(row, seed) for seed in self.seeds}
            found[row.name] = {seed: json.loads(path.read_text(encoding='utf-8'))
                               for seed, path in paths.items() if path.is_file()}
        return found


def grid_names(repo: Path) -> list[str]:
    """Names of all grids of the repository."""
    return sorted(path.stem for path in (repo / 'benchmarks/grids').glob('*.py') if path.stem != '__init__')


def load_grid(name: str, repo: Path) -> Grid:
    """Read and check ``benchmarks/grids/NAME.py``.

    Raises:
        ValueError: If there is no such grid or one of its fields is wrong.
        FileNotFoundError: If a row's config does not exist.
    """
    if name not in grid_names(repo):
        raise ValueError(f'no grid named {name!r} in benchmarks/grids; there are: {", ".join(grid_names(repo))}')
    path = repo / 'benchmarks/grids' / f'{name}.py'
    fields = _read_fields(path)
    config = fields.pop('config', None)
    for key in ('title', 'rows', 'seeds', 'metric'):
        if not fields.get(key):
            raise ValueError(f'{path}: {key} is missing or empty')
    if fields.get('better', 'higher') not in ('higher', 'lower'):
        raise ValueError(f"{path}: better must be 'higher' or 'lower', got {fields['better']!r}")
    if len(set(fields['seeds'])) != len(fields['seeds']):
        raise ValueError(f'{path}: seeds repeat: {fields["seeds"]}')
    grid = Grid(name=name, repo=repo, **dict(fields, rows=[]))
    for given in fields['rows']:
        if config is not None:
            given = {'config': config.replace('{name}', str(given.get('name'))), **given}
        grid.rows.append(_read_row(given, grid, path))
    return grid


def _read_fields(path: Path, is_base: bool = False) -> dict[str, Any]:
    """What a file says, and the grid that it is based on."""
    fields = {key: value for key, value in runpy.run_path(str(path)).items() if not key.startswith('_')}
    unknown = sorted(set(fields) - set(GRID_KEYS))
    if unknown:
        raise ValueError(f'{path}: unknown names {unknown}; allowed: {", ".join(GRID_KEYS)}')
    base = fields.pop('base', None)
    if base is None:
        return fields
    other = path.with_name(f'{base}.py')
    if is_base or not other.is_file():
        raise ValueError(f'{path}: base must be the name of a grid that has no base itself, got {base!r}')
    return {**_read_fields(other, is_base=True), **fields}


def _read_row(given: Mapping[str, Any], grid: Grid, path: Path) -> Row:
    if set(given) - set(ROW_KEYS) or 'name' not in given or 'config' not in given:
        raise ValueError(f'{path}: a row has name, config and perhaps title, cfg_options; got {sorted(given)}')
    if not re.fullmatch(r'[\w.+-]+', given['name']):
        raise ValueError(f'{path}: rows: name {given["name"]!r} becomes a file name: letters, digits and _ . + - only')
    if given['name'] in [row.name for row in grid.rows]:
        raise ValueError(f'{path}: rows: name {given["name"]!r} occurs twice')
    for key in ('randomness.seed', *grid.seed_keys):
        if key in given.get('cfg_options', {}):
            raise ValueError(f'{path}: rows: {given["name"]}: cfg_options sets {key}, which `seeds` does')
    if not (grid.repo / given['config']).is_file():
        raise FileNotFoundError(f'{path}: rows: {given["name"]}: config {given["config"]} does not exist')
    return Row(given['name'], given.get('title', given['name']), given['config'], given.get('cfg_options', {}), grid)


def normalize(config: dict[str, Any], repo: Path) -> dict[str, Any]:
    """Take the machine out of a resolved config.

    Args:
        config: A resolved config as a plain dict.
        repo: Root of the repository; paths below it become relative to it.

    Returns:
        What is trained, in types of JSON only. ``<data_root>`` stands for absolute data roots, and ``<files>`` holds
        the hash of each text file of the repository that the config names (split lists).
    """
    kept = {key: value for key, value in config.items() if key not in NOT_TRAINED}
    if isinstance(kept.get('randomness'), Mapping):
        kept['randomness'] = {key: value for key, value in kept['randomness'].items() if key != 'seed'}
    roots = sorted(set(_absolute_data_roots(kept)), key=len, reverse=True)
    files: dict[str, str] = {}

    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {str(key): plain(entry) for key, entry in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(entry) for entry in value]
        if value is None or isinstance(value, (bool, int, float)):
            return value
        return plain_text(str(value))

    def plain_text(text: str) -> str:
        for root in roots:
            if text == root or text.startswith(root.rstrip('/') + '/'):
                return DATA_ROOT + text[len(root.rstrip('/')):]
        if text.startswith('/'):
            text = os.path.normpath(text)
            if Path(text).is_relative_to(repo):
                text = str(Path(text).relative_to(repo))
        if text.endswith('.txt') and not text.startswith(('/', DATA_ROOT)) and (repo / text).is_file():
            files[text] = hashlib.sha256((repo / text).read_bytes()).hexdigest()
        return text

    content = plain(kept)
    return dict(content, **{'<files>': files}) if files else content


def _absolute_data_roots(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            if isinstance(value, str) and str(key).endswith('data_root') and os.path.isabs(value):
                yield value
            else:
                yield from _absolute_data_roots(value)
    elif isinstance(node, (list, tuple)):
        for value in node:
            yield from _absolute_data_roots(value)


def differences(old: Any, new: Any, prefix: str = '') -> list[str]:
    """Dotted keys in which two normalized configs differ, with both values."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = sorted(set(old) | set(new))
        return [line for key in keys for line in differences(old.get(key), new.get(key), f'{prefix}.{key}'.lstrip('.'))]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [line for index, pair in pairs for line in differences(*pair, f'{prefix}.{index}')]
    return [] if old == new else [f'{prefix}: {_short(old)} -> {_short(new)}']


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f'{text[:77]}...'


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {key: os.environ.get(key) for key in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value
