"""Several named data sources in one data set: labeled, unlabeled, ..."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from mmengine.dataset import ConcatDataset
from mmengine.registry import DATASETS as MMENGINE_DATASETS

from mmssl.registry import DATASETS
from mmssl.utils.image_paths import examples_of, image_paths, leaf_datasets, real_paths, shared_images

from .samplers.draw import Draw
from .seeding import stateless_randomness
from .subset import numbering_offset, renumbered, without
from .transforms.multi_branch import MultiBranch

KEY = 'train_dataloader.dataset.sources'


@DATASETS.register_module()
class MultiSourceDataset(ConcatDataset):
    """Named sources, concatenated; the sampler ``mmssl.MultiSourceSampler`` mixes them.

    An mmengine ``ConcatDataset`` in all respects but five:

    - sources have names, so a config that inherits changes one of them by key;
    - an unlabeled source may lack ``classes`` and other meta information; what two sources both state must agree;
    - images that are in two sources are an error, unless ``allow_overlap``;
    - **randomness is stateless**: an index from ``mmssl.MultiSourceSampler`` (a :class:`Draw`) carries its number, and
      the pipeline runs under random numbers derived from ``(seed, source, draw)``. So an image is augmented in the same
      way in any worker, on any rank and after any resume. A plain integer index is not reseeded, since any other
      sampler would then repeat the same augmentation in every pass.

    Args:
        sources: Data sets (configs or built) by name; their order is the order of
            ``train_dataloader.sampler.source_ratio``.
        ignore_keys: Keys of the meta information that may differ between sources; the first source that states one
            wins. Default: None.
        allow_overlap: Whether an image may be in two sources, for protocols that use the labeled images as unlabeled
            ones as well. Default: False.
        include_labeled: What becomes of images of the source ``labeled`` that are in another source as well, as in
            protocols that draw the labeled images from a data set and the unlabeled ones from all of it: True keeps
            them, False takes them out of the other source, which must then be a plain data set. Default: None, they
            are an overlap like any other.
        lazy_init: Whether to leave reading the lists and the overlap check to :meth:`full_init`. Default: False.
        seed: Seed of the augmentation, >= 0. Default: None, the seed of the sampler, which is ``randomness.seed``, or
            a number that all ranks share. (A process's own random state would not do: with
            ``randomness.diff_rank_seed`` it differs between ranks, and workers have yet other ones.)

    Raises:
        ValueError: A source is empty, sources share images, their meta information contradicts, or their pipelines
            make different branches.
    """

    def __init__(self,
                 sources: Mapping[str, Any],
                 ignore_keys: str | Sequence[str] | None = None,
                 allow_overlap: bool = False,
                 include_labeled: bool | None = None,
                 lazy_init: bool = False,
                 seed: int | None = None) -> None:
        # ConcatDataset.__init__ is not called: it demands equal meta information of all, labeled or not. All else that
        # it does is done here, in the same attributes.
        if not isinstance(sources, Mapping) or not sources:
            raise ValueError(f'{KEY} must be a dict with one data set for each name, for example '
                             f'dict(labeled=dict(...), unlabeled=dict(...)), got {sources!r}')
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
            raise ValueError(f'train_dataloader.dataset.seed must be an integer >= 0 or None, got {seed!r}')
        if include_labeled not in (None, True, False):
            raise ValueError('train_dataloader.dataset.include_labeled must be True, False or None, got '
                             f'{include_labeled!r}')
        if include_labeled is not None and 'labeled' not in sources:
            raise ValueError(f'train_dataloader.dataset.include_labeled={include_labeled}, but no source is called '
                             f'`labeled`: {KEY} has {list(sources)}')
        self.source_names = list(sources)
        self.datasets = [_build_source(name, source) for name, source in sources.items()]
        self.ignore_keys = [ignore_keys] if isinstance(ignore_keys, str) else list(ignore_keys or [])
        self.allow_overlap = allow_overlap
        self.include_labeled = include_labeled
        self.seed = seed
        self._metainfo = _merge_metainfo(self.source_names, self.datasets, self.ignore_keys)
        _check_branches(self.source_names, self.datasets)
        self._is_plain: list[bool] | None = None
        self._fully_initialized = False
        if not lazy_init:
            self.full_init()

    def full_init(self) -> None:
        """Read the lists of all sources and check them for empty sources and for overlap."""
        if self._fully_initialized:
            return
        for name, source in zip(self.source_names, self.datasets, strict=True):
            with _naming(name, source):
                source.full_init()
            if len(source) == 0:
                raise ValueError(f'{KEY}.{name} has no image ({_where(source)})')
        if self.include_labeled is False:
            self.datasets = _without_labeled(self.source_names, self.datasets)
        super().full_init()
        if not self.allow_overlap:
            sources = dict(zip(self.source_names, self.datasets, strict=True))
            if self.include_labeled:
                sources.pop('labeled')
            _check_overlap(sources)

    def __getitem__(self, idx: int) -> Any:
        """Item of one source after its pipeline; see the class for how a :class:`Draw` fixes the random numbers."""
        if not isinstance(idx, Draw):
            return self._numbered(idx)
        with stateless_randomness(idx.seed if self.seed is None else self.seed, idx.source, idx.draw):
            return self._numbered(int(idx))

    def _numbered(self, idx: int) -> Any:
        """Item whose ``sample_idx`` counts from the start of its source."""
        item = super().__getitem__(idx)
        if self._is_plain is None:
            self._is_plain = [not hasattr(source, 'datasets') and not hasattr(source, 'dataset')
                              for source in self.datasets]
        if all(self._is_plain):
            return item
        source, inside = self._get_ori_dataset_idx(idx)
        offset = 0 if self._is_plain[source] else numbering_offset(self.datasets[source], inside)
        return renumbered(item, lambda number: number + offset) if offset else item


class _naming:
    """Puts the config key of a source in front of the errors that its data set raises."""

    def __init__(self, name: str, source: Any) -> None:
        self.name, self.source = name, source

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if error is None:
            return
        if isinstance(error, ValueError) and 'need at least one array' in str(error):
            # What mmengine's BaseDataset says when there is nothing to serialize.
            raise ValueError(f'{KEY}.{self.name} has no image ({_where(self.source)})') from error
        if kind in (ValueError, FileNotFoundError, NotADirectoryError, KeyError, TypeError, AssertionError):
            text = error.args[0] if error.args and isinstance(error.args[0], str) else str(error)
            raise kind(f'{KEY}.{self.name}: {text}') from error


def _build_source(name: str, source: Any) -> Any:
    """Build a source from its config; data sets that are already built pass."""
    if not isinstance(source, Mapping):
        if not all(hasattr(source, attribute) for attribute in ('full_init', 'metainfo', '__getitem__')):
            raise TypeError(f'{KEY}.{name} must be a data set or the config of one, got {type(source).__name__}')
        return source
    if 'type' not in source:
        raise KeyError(f'{KEY}.{name} has no `type`; its keys are {sorted(source)}')
    with _naming(name, source):
        return MMENGINE_DATASETS.build(source)


def _where(source: Any) -> str:
    """Folder and list of a data set or of its config, for messages."""
    def get(key: str) -> Any:
        return source.get(key) if isinstance(source, Mapping) else getattr(source, key, None)

    parts = [f'{key}={get(key)!r}' for key in ('data_root', 'data_prefix', 'img_path', 'ann_file') if get(key)]
    return ', '.join(parts) or f'type {get("type") or type(source).__name__}'


def _is_stated(value: Any) -> bool:
    """Whether a value of the meta information says something; without classes, mmseg writes ``None`` and ``[]``."""
    if value is None:
        return False
    return len(value) > 0 if hasattr(value, '__len__') else True


def _equal(first: Any, second: Any) -> bool:
    """Equality of two values of the meta information; a tuple equals the list that a dumped config makes of it."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(_equal(first[key], second[key]) for key in first)
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return bool(np.array_equal(first, second))
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        return len(first) == len(second) and all(map(_equal, first, second))
    return bool(first == second)


def _merge_metainfo(names: list[str], datasets: list[Any], ignore_keys: list[str]) -> dict:
    """What the sources state, together; raises where two contradict."""
    merged: dict[str, Any] = {}
    stated_by: dict[str, str] = {}
    for name, source in zip(names, datasets, strict=True):
        for key, value in source.metainfo.items():
            if not _is_stated(value):
                merged.setdefault(key, value)
            elif key not in stated_by:
                merged[key], stated_by[key] = value, name
            elif key not in ignore_keys and not _equal(merged[key], value):
                raise ValueError(f'{KEY}.{stated_by[key]} and {KEY}.{name} disagree on metainfo `{key}`: '
                                 f'{merged[key]!r} and {value!r}. Make them equal, or add {key!r} to '
                                 'train_dataloader.dataset.ignore_keys')
    return merged


def _check_branches(names: list[str], datasets: list[Any]) -> None:
    """All sources must make the same branches, else the batch cannot be collated."""
    found: dict[str, list[str] | None] = {}
    filled: set[str] = set()
    for name, source in zip(names, datasets, strict=True):
        for leaf in leaf_datasets(source):
            transforms = getattr(getattr(leaf, 'pipeline', None), 'transforms', [])
            last = transforms[-1] if transforms else None
            found.setdefault(name, list(last.branches) if isinstance(last, MultiBranch) else None)
            filled.update(last.branch_pipelines if isinstance(last, MultiBranch) else ())
    # A data set for something else than branches (no source ends in MultiBranch) is none of our business.
    if all(branches is None for branches in found.values()):
        return
    for name, branches in found.items():
        if branches is None:
            raise ValueError(f'{KEY}.{name}.pipeline must end in `mmssl.MultiBranch`, as those of the other sources do')
    first_name, first = next(iter(found.items()))
    for name, branches in found.items():
        if branches != first:
            raise ValueError(f'{KEY}: MultiBranch.branches must be the same list in every source, got {first} in '
                             f'`{first_name}` and {branches} in `{name}`')
    empty = [branch for branch in first or [] if branch not in filled]
    if empty:
        raise ValueError(f'{KEY}: no source has a pipeline for {empty}, which MultiBranch.branches={first} announces')


def _without_labeled(names: list[str], datasets: list[Any]) -> list[Any]:
    """The sources, the others without the images of ``labeled``."""
    labeled = set(real_paths(image_paths(datasets[names.index('labeled')])))
    kept = []
    for name, source in zip(names, datasets, strict=True):
        shared = [] if name == 'labeled' else [
            index for index, path in enumerate(real_paths(image_paths(source))) if path in labeled]
        if len(shared) == len(source):
            raise ValueError(f'{KEY}.{name}: no image is left without the labeled ones '
                             '(train_dataloader.dataset.include_labeled=False)')
        with _naming(name, source):
            kept.append(without(source, shared) if shared else source)
    return kept


def _check_overlap(sources: Mapping[str, Any]) -> None:
    """Refuse images that are in two sources."""
    if len(sources) < 2:
        return
    given = {name: image_paths(source) for name, source in sources.items()}
    real = {name: real_paths(paths) for name, paths in given.items()}
    for first, second, shared in shared_images(real):
        as_given = dict(zip(real[second], given[second], strict=True))
        options = 'train_dataloader.dataset.allow_overlap=True if the protocol wants them in both'
        if 'labeled' in (first, second):
            options += '; train_dataloader.dataset.include_labeled=False takes the labeled ones out of the other source'
        raise ValueError(f'{KEY}: `{first}` ({len(given[first])} images) and `{second}` ({len(given[second])}) share '
                         f'{len(shared)} image{"s" * (len(shared) != 1)}, '
                         f'{examples_of([as_given[path] for path in shared])}. Take them out of one of the two '
                         f'({KEY}.{second}.exclude, if it is a mmssl.UnlabeledImageDataset), or set {options}')
