"""Builds the data sets of a config without their pipelines, and finds missing files, empty sources and overlap."""

import copy
import difflib
import glob
import hashlib
import inspect
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mmengine.dataset import BaseDataset
from mmengine.registry import DATASETS, DefaultScope, Registry

from mmssl.datasets.subset import Subset, without
from mmssl.utils.image_paths import examples_of, image_paths, real_paths, shared_images

from .nodes import branches_of, get, is_sequence, type_name, walk
from .report import Report

# As mmengine reads it from a config.
ENVIRONMENT = re.compile(r'\{\{[\'"]?\s*\$\s*(\w+)\s*:\s*(\S*?)\s*[\'"]?\}\}')
LIBRARIES = ('mmengine', 'mmpretrain', 'mmseg', 'mmssl')


@dataclass
class Leaf:
    """One data set that holds samples itself, inside whatever wrappers.

    Attributes:
        key: Config key.
        config: Its node, pipeline included.
        dataset: Built without pipeline.
        key_of_pipeline: Config key of the pipeline that loads its samples.
        pipeline: That pipeline.
    """

    key: str
    config: Mapping[str, Any]
    dataset: Any
    key_of_pipeline: str
    pipeline: Any

    def info(self, index: int) -> dict[str, Any]:
        """What the data set knows about one sample; empty if it does not say."""
        return self.dataset.get_data_info(index) if hasattr(self.dataset, 'get_data_info') else {}

    @property
    def is_local(self) -> bool:
        """Whether the files are on a local file system."""
        backend = self.config.get('backend_args') or {}
        return backend.get('backend', 'local') in ('local', 'LocalBackend')

    @property
    def annotation_loaders(self) -> list[tuple[str, Mapping[str, Any]]]:
        """The transforms that load labels."""
        return [(k, t) for k, t in walk(self.pipeline, self.key_of_pipeline) if 'Annotation' in type_name(t)]

    @property
    def image_loader(self) -> Mapping[str, Any] | None:
        """The transform that loads the image; None if there is none."""
        transforms = (t for _, t in walk(self.pipeline, self.key_of_pipeline))
        return next((t for t in transforms if re.match('Load.*Image', type_name(t))), None)

    @property
    def has_labels(self) -> bool:
        """Whether the pipeline loads labels."""
        return bool(self.annotation_loaders)

    @property
    def classes(self) -> list[str] | None:
        """Class names, if the data set has some."""
        metainfo = getattr(self.dataset, 'metainfo', None) or {}
        classes = metainfo.get('classes')
        return [str(name) for name in classes] if classes else None

    @property
    def ignore_index(self) -> int:
        """The label that is no class."""
        return int(getattr(self.dataset, 'ignore_index', 255))


@dataclass
class Source:
    """One source of a data loader: a key of `MultiSourceDataset.sources`, or the whole data set.

    Attributes:
        name: Its name.
        key: Config key.
        leaves: The data sets in it.
        length: Samples, repeats counted.
        complete: Whether every data set in it could be built.
        branches: Branches that its pipelines make; empty without `MultiBranch`.
    """

    name: str
    key: str
    leaves: list[Leaf] = field(default_factory=list)
    length: int = 0
    complete: bool = True
    branches: set[str] = field(default_factory=set)

    @property
    def is_labeled(self) -> bool:
        """Whether it feeds the supervised loss."""
        return 'sup' in self.branches if self.branches else True


@contextmanager
def config_scope(cfg: Any) -> Iterator[None]:
    """The default scope of mmengine as the config states it, restored afterwards."""
    scope = cfg.get('default_scope')
    with DefaultScope.overwrite_default_scope(scope if isinstance(scope, str) else None):
        yield


def find_class(registry: Registry, kind: Any, scope: str | None = None) -> Any:
    """What `type` stands for in a scope (None: the present one); None if it is not found."""
    if not isinstance(kind, str):
        return kind
    # `Registry.get` itself does not look at the default scope.
    with registry.switch_scope_and_registry(scope) as present:
        return present.get(kind)


def is_known(registry: Registry, node: Mapping[str, Any]) -> bool:
    """Whether the `type` of a node is found; one without a `type`, or with a class, is not looked up."""
    kind = node.get('type')
    if not isinstance(kind, str):
        return True
    try:
        return find_class(registry, kind, node.get('_scope_')) is not None
    except Exception:  # of the import of a whole library
        return False


def name_variables(cfg: Any, report: Report) -> None:
    """Add to the errors about missing files which environment variable their folder comes from, where the config says.

    Args:
        cfg: An mmengine `Config`; its text holds `{{$CAMVID_ROOT:data/camvid}}` and the like.
        report: Its findings are replaced.
    """
    for variable, default in dict(ENVIRONMENT.findall(getattr(cfg, 'text', None) or '')).items():
        root = os.environ.get(variable, default)
        said = f'{variable} is {root!r}' if variable in os.environ else f'set the environment variable {variable}'
        for index, finding in enumerate(report.findings):
            if root and finding.kind is FileNotFoundError and f': {root}' in finding.message:
                report.findings[index] = replace(finding, message=f'{finding.message}; {said}')


def source_nodes(loader: Any, loader_key: str) -> list[tuple[str, str, Any]]:
    """Name, config key and node of each source of a data loader."""
    dataset = get(loader, 'dataset')
    key = f'{loader_key}.dataset'
    sources = get(dataset, 'sources')
    if isinstance(sources, Mapping):
        return [(str(name), f'{key}.sources.{name}', node) for name, node in sources.items()]
    return [(loader_key.split('_')[0], key, dataset)]


def build_sources(loader: Any, loader_key: str, report: Report) -> list[Source]:
    """Build every data set of a data loader; what cannot be built is reported, not raised.

    Args:
        loader: The data loader's node.
        loader_key: Its config key, such as `train_dataloader`.
        report: Receives the findings.
    """
    sources = []
    for name, key, node in source_nodes(loader, loader_key):
        source = Source(name, key)
        source.length = _build(node, key, source, report, None)
        if source.complete and source.length == 0:
            report.error(key, 'the source is empty: it has no sample, at least 1 is needed')
        sources.append(source)
    return sources


def _build(node: Any, key: str, source: Source, report: Report, outer: tuple[str, Any] | None) -> int:
    """Build the leaves below one node; returns its length. `outer` is the pipeline of a wrapper around it."""
    if not isinstance(node, Mapping):
        report.error(key, f'must be the config of a data set (a dict with `type`), got {node!r}')
        source.complete = False
        return 0
    pipeline = (f'{key}.pipeline', node['pipeline']) if node.get('pipeline') is not None else outer
    if is_sequence(node.get('datasets')):
        return sum(_build(n, f'{key}.datasets.{i}', source, report, pipeline) for i, n in enumerate(node['datasets']))
    if isinstance(node.get('sources'), Mapping):
        return sum(_build(n, f'{key}.sources.{s}', source, report, pipeline) for s, n in node['sources'].items())
    kind = find_class(DATASETS, node.get('type')) if is_known(DATASETS, node) else None
    is_subset = isinstance(kind, type) and issubclass(kind, Subset)
    if isinstance(node.get('dataset'), Mapping) and not is_subset:
        inner = _build(node['dataset'], f'{key}.dataset', source, report, pipeline)
        # A wrapper's own pipeline (mixing of images) runs after the inner one, and may hold the branches.
        if node.get('pipeline') is not None:
            for _, _, made in branches_of(node['pipeline'], f'{key}.pipeline'):
                source.branches.update(made)
        if isinstance(node.get('held_out'), float):  # mmssl.PartialLabelDataset
            held_out = round(node['held_out'] * inner)
            inner = held_out if node.get('part') == 'held_out' else inner - held_out
        return inner * int(node.get('times', 1))

    # A part of a data set is one itself; its files and its pipeline are written one level below.
    whole, whole_key = (node['dataset'], f'{key}.dataset') if is_subset else (node, key)
    if is_subset and whole.get('pipeline') is not None:
        pipeline = (f'{whole_key}.pipeline', whole['pipeline'])
    pipeline_key, transforms = pipeline or (f'{key}.pipeline', [])
    for _, _, made in branches_of(transforms, pipeline_key):
        source.branches.update(made)
    if not is_known(DATASETS, node) or not is_known(DATASETS, whole):  # reported by `check_types`
        source.complete = False
        return 0
    if (not _prefixes_known(whole, whole_key, report) or not _paths_exist(node, key, report)
            or (is_subset and not _paths_exist(whole, whole_key, report))):
        source.complete = False
        return 0
    config = copy.deepcopy(dict(node))
    for part in (config, config.get('dataset')) if is_subset else (config, ):
        if 'pipeline' in part:
            part['pipeline'] = []
    try:
        dataset = _build_dataset(config)
        length = len(dataset)
    except Exception as error:
        kind = FileNotFoundError if isinstance(error, FileNotFoundError) else ValueError
        report.error(key, f'{type_name(node)} cannot be built: {type(error).__name__}: {error}', kind)
        source.complete = False
        return 0
    source.leaves.append(Leaf(key, whole, dataset, pipeline_key, transforms))
    return length


def _build_dataset(config: dict[str, Any]) -> Any:
    """Build a data set; one of mmengine's kind without serializing its list, which costs a garbage collection."""
    kind = find_class(DATASETS, config.get('type'))
    if not (isinstance(kind, type) and issubclass(kind, BaseDataset)) or config.get('lazy_init'):
        return DATASETS.build(config)
    parameters = inspect.signature(kind.__init__).parameters.values()
    if not any(p.name == 'lazy_init' or p.kind is p.VAR_KEYWORD for p in parameters):
        return DATASETS.build(config)
    dataset = DATASETS.build({**config, 'lazy_init': True})
    dataset.serialize_data = False
    dataset.full_init()
    return dataset


def _paths_exist(node: Mapping[str, Any], key: str, report: Report) -> bool:
    """Report a data root, list file or folder that does not exist before the data set trips over it."""
    root, found = node.get('data_root') or '', True
    if (node.get('backend_args') or {}).get('backend', 'local') not in ('local', 'LocalBackend') or '://' in str(root):
        return True
    if root and not os.path.isdir(root):
        report.error(f'{key}.data_root', f'no such folder: {_shown(root)}', FileNotFoundError)
        return False
    for name in ('ann_file', 'img_path', 'exclude', 'seg_map_path'):
        value = node.get(name)
        paths = {f'{key}.{name}': value}
        if is_sequence(value):
            paths = {f'{key}.{name}.{index}': path for index, path in enumerate(value)}
        for path_key, path in paths.items():
            if not path or not isinstance(path, str):
                continue
            full = os.path.join(root, path)
            # Images may be named by a pattern, which only has to match something.
            if os.path.exists(full) or next(glob.iglob(path, root_dir=root or None, recursive=True), None):
                continue
            report.error(path_key, f'no such file or folder: {_shown(full)}', FileNotFoundError)
            found = False
    prefixes = node.get('data_prefix')
    for name, path in prefixes.items() if isinstance(prefixes, Mapping) else ():
        if path and isinstance(path, str) and not os.path.isdir(os.path.join(root, path)):
            full = os.path.join(root, path)
            report.error(f'{key}.data_prefix.{name}', f'no such folder: {_shown(full)}', FileNotFoundError)
            found = False
    return found


def _prefixes_known(node: Mapping[str, Any], key: str, report: Report) -> bool:
    """Report a name in `data_prefix` that the data set would never look at."""
    kind, prefixes = find_class(DATASETS, node.get('type')), node.get('data_prefix')
    if not isinstance(kind, type) or not isinstance(prefixes, Mapping):
        return True
    known = {'img_path'}
    for base in kind.__mro__:
        parameter = inspect.signature(base.__init__).parameters.get('data_prefix')
        if parameter is not None and isinstance(parameter.default, Mapping):
            known.update(parameter.default)
    unknown = [str(name) for name in prefixes if name not in known]
    if kind.__module__.partition('.')[0] not in LIBRARIES:
        # A data set of the user's own may read names that its signature does not tell.
        unknown = [name for name in unknown if difflib.get_close_matches(name, known - set(prefixes), n=1)]
    for name in unknown:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f'; is {close[0]!r} meant?' if close else ''
        report.error(
            f'{key}.data_prefix.{name}', f'is not read by {type_name(node)}; allowed: {", ".join(sorted(known))}{hint}'
        )
    return not unknown


def _shown(path: str) -> str:
    return path if os.path.isabs(path) else f'{path} (relative to {os.getcwd()})'


def sample_paths(source: Source) -> list[str]:
    """Absolute image path of every sample, links resolved; samples without a path are left out."""
    return [path for leaf in source.leaves for path in real_paths(image_paths(leaf.dataset))]


def leave_out_labeled(train: list[Source], dataset: Any, report: Report) -> None:
    """Do to the sources what `include_labeled=False` does in training."""
    labeled = next((source for source in train if source.name == 'labeled'), None)
    if get(dataset, 'include_labeled') is not False or labeled is None:
        return
    taken = set(sample_paths(labeled))
    for source in train:
        for leaf in source.leaves if source is not labeled else ():
            paths = real_paths(image_paths(leaf.dataset))
            shared = [index for index, path in enumerate(paths) if path in taken]
            if not shared:
                continue
            if leaf.key != source.key or len(shared) == len(paths):
                what = 'is made of several data sets' if leaf.key != source.key else 'holds no other image'
                report.error(
                    'train_dataloader.dataset.include_labeled',
                    f'is False, but {source.key}, which the {len(shared)} labeled images are to be taken out of, {what}'
                )
                continue
            leaf.dataset = without(leaf.dataset, shared)
            source.length -= len(shared)
            report.facts.append(f'{source.key}: {len(shared)} labeled images are left out (include_labeled=False)')


def check_overlap(
    train: list[Source], others: dict[str, list[Source]], dataset: Any, report: Report
) -> dict[str, list[str]]:
    """Report samples that are in two lists.

    Args:
        train: Sources of the training loader.
        others: Sources of `val_dataloader` and `test_dataloader`.
        dataset: Node `train_dataloader.dataset`, for its `allow_overlap` and `include_labeled`.
        report: Receives the findings.

    Returns:
        The image paths of each source, by config key.
    """
    paths = {source.key: sample_paths(source) for source in train}
    for source in train:
        repeated = sorted(path for path, count in Counter(paths[source.key]).items() if count > 1)
        if repeated:
            report.warn(source.key, f'{len(repeated)} images occur more than once, {examples_of(repeated)}')
    names = {source.key: source.name for source in train}
    for first, second, common in shared_images(paths):
        message = f'{len(common)} images are in `{names[first]}` and in `{names[second]}`, {examples_of(common)}'
        is_about_labeled = 'labeled' in (names[first], names[second])
        if get(dataset, 'allow_overlap', False):
            report.facts.append(f'{message} (allowed: train_dataloader.dataset.allow_overlap=True)')
        elif is_about_labeled and get(dataset, 'include_labeled', False):
            report.facts.append(f'{message} (allowed: train_dataloader.dataset.include_labeled=True)')
        else:
            hint = '; include_labeled=False takes the labeled ones out of the other source' if is_about_labeled else ''
            report.error(
                'train_dataloader.dataset.sources',
                f'{message}; allowed is none, unless train_dataloader.dataset.allow_overlap=True{hint}',
            )
    for loader_key, sources in others.items():
        for source in sources:
            paths[source.key] = sample_paths(source)
            for own in train:
                common = sorted(set(paths[own.key]) & set(paths[source.key]))
                if common:
                    report.error(
                        f'{loader_key}.dataset',
                        f'{len(common)} images are also trained on ({own.key}), {examples_of(common)}; allowed is none',
                    )
    return paths


def check_same_content(paths: dict[str, list[str]], report: Report) -> None:
    """Warn about files of different names that hold the same bytes; only files of equal size are read."""
    by_size: dict[int, dict[str, str]] = {}
    for key, files in paths.items():
        for path in files:
            if os.path.isfile(path):
                by_size.setdefault(os.path.getsize(path), {}).setdefault(path, key)
    same: dict[str, list[tuple[str, str]]] = {}
    for files in by_size.values():
        if len(files) > 1:
            for path, key in files.items():
                same.setdefault(hashlib.sha256(Path(path).read_bytes()).hexdigest(), []).append((path, key))
    groups = [group for group in same.values() if len(group) > 1]
    across = [group for group in groups if len({key.split('_')[0] for _, key in group}) > 1]
    for title, chosen in (('are in training and in evaluation', across), ('occur under several names', groups)):
        if chosen:
            examples = '; '.join(' = '.join(path for path, _ in group[:3]) for group in chosen[:3])
            report.warn('train_dataloader.dataset', f'{len(chosen)} images with equal bytes {title}: {examples}')
            return
