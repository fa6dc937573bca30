"""Which image files a data set is made of, and which ones two data sets share."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any


def leaf_datasets(dataset: Any) -> Iterator[Any]:
    """The data sets below wrappers such as RepeatDataset and ConcatDataset."""
    if hasattr(dataset, 'datasets'):
        for inner in dataset.datasets:
            yield from leaf_datasets(inner)
    elif hasattr(dataset, 'dataset'):
        yield from leaf_datasets(dataset.dataset)
    else:
        yield dataset


def image_paths(dataset: Any) -> list[str]:
    """Paths of the images as the data set gives them; none for one that holds the images themselves."""
    paths = []
    for leaf in leaf_datasets(dataset):
        for index in range(len(leaf)) if hasattr(leaf, 'get_data_info') else ():
            path = leaf.get_data_info(index).get('img_path')
            if path is None:
                break  # Nor will the next one have it.
            paths.append(os.fspath(path))
    return paths


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
