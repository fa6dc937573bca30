"""Which image files a data set is made of, and which ones two data sets share."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

MEMORY = 'memory://'


def leaf_datasets(dataset: Any, mark: str | None = None) -> Iterator[Any]:
    """The data sets below wrappers such as RepeatDataset and ConcatDataset.

    Args:
        dataset: A data set, or such a wrapper.
        mark: Attribute of a wrapper that is taken as it is, with what is in it.
    """
    if mark is not None and hasattr(dataset, mark):
        yield dataset
    elif hasattr(dataset, 'datasets'):
        for inner in dataset.datasets:
            yield from leaf_datasets(inner, mark)
    elif hasattr(dataset, 'dataset'):
        yield from leaf_datasets(dataset.dataset, mark)
    else:
        yield dataset


def image_paths(dataset: Any) -> list[str]:
    """Paths of the images as the data set gives them.

    Images that a data set holds itself (CIFAR, MNIST) have the name of their file and their number instead of a path,
    such as ``memory://CIFAR10/data/cifar10/train#17``, by which two data sets of the same files are found to overlap.
    """
    paths = []
    for leaf in leaf_datasets(dataset):
        for index in range(len(leaf)) if hasattr(leaf, 'get_data_info') else ():
            info = leaf.get_data_info(index)
            if info.get('img_path') is not None:
                paths.append(os.fspath(info['img_path']))
            elif 'img' in info:
                paths.append(_memory_path(leaf, index))
            else:
                break  # Nor will the next one have it.
    return paths


def _memory_path(leaf: Any, index: int) -> str:
    """Name of an image that the data set holds itself: its class, root, part, and number in all of them."""
    if hasattr(leaf, 'whole'):  # mmssl.Subset, which has left out the others
        leaf, index = leaf.whole, leaf.indices[index]
    chosen = getattr(leaf, '_indices', None)
    if isinstance(chosen, Sequence):  # `indices` of mmengine's BaseDataset
        index = chosen[index]
    root = (getattr(leaf, 'data_prefix', None) or {}).get('root') or getattr(leaf, 'data_root', None) or ''
    part = getattr(leaf, 'split', '')
    if any(kind.__name__ == 'MNIST' for kind in type(leaf).__mro__):
        # mmpretrain's chooses its files by `test_mode`, whatever `split` says.
        part = 'test' if leaf.test_mode else 'train'
    return f'{MEMORY}{type(leaf).__name__}{os.path.abspath(os.fspath(root))}/{part}#{index}'


def real_paths(paths: Iterable[str]) -> list[str]:
    """Absolute path of each image, links resolved; paths of remote back ends (``s3://...``) as they are.

    Links are found by listing each folder once, not by one system call for each image.
    """
    folders: dict[str, tuple[str, set[str]]] = {}
    real = []
    for path in paths:
        if '://' in path:
            real.append(path)
            continue
        folder, name = os.path.split(path)
        if folder not in folders:
            real_folder = os.path.realpath(folder)
            folders[folder] = real_folder, _links_in(real_folder)
        real_folder, links = folders[folder]
        full = os.path.join(real_folder, name)
        real.append(os.path.realpath(full) if name in links else full)
    return real


def _links_in(folder: str) -> set[str]:
    """Names of the links in a folder; none if there is no such folder."""
    try:
        with os.scandir(folder) as entries:
            return {entry.name for entry in entries if entry.is_symlink()}
    except OSError:
        return set()


def shared_images(real: Mapping[str, Collection[str]]) -> Iterator[tuple[str, str, list[str]]]:
    """Each pair of names whose images overlap, with the sorted images that both have.

    Args:
        real: Real paths of the images of each source, by its name.
    """
    sets = {name: set(paths) for name, paths in real.items()}
    for first, second in combinations(sets, 2):
        common = sorted(sets[first] & sets[second])
        if common:
            yield first, second, common


def examples_of(paths: Collection[str]) -> str:
    """``such as a, b, c`` for messages."""
    return f'such as {", ".join(list(paths)[:3])}'
