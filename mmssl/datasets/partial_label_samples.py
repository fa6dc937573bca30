"""Which samples a partial-label training set numbers, and a digest of their candidate sets."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmssl.utils.image_paths import leaf_datasets

from .multi_source_dataset import MultiSourceDataset
from .partial_label_dataset import PartialLabelDataset
from .subset import Subset, full_length

KEY = 'train_dataloader.dataset'


@dataclass(frozen=True)
class PartialLabelSamples:
    """The samples of a training set.

    Attributes:
        length: Numbers that ``sample_idx`` can be: 0 to length - 1.
        num_classes: C.
        digest: SHA-256 of length, classes, numbers and candidate sets; of the same sets in another order it differs.
        origin: Candidate files, samples, classes and the start of the digest, for messages.
    """

    length: int
    num_classes: int
    digest: bytes
    origin: str


def partial_label_samples(dataset: Any, owner: str = 'model.objective') -> PartialLabelSamples:
    """Find the candidate sets of a training set and the numbers of their samples.

    Args:
        dataset: ``mmssl.PartialLabelDataset``, in wrappers that repeat or balance, or such as the only source with
            candidate sets of ``mmssl.MultiSourceDataset``, which may be a ``ConcatDataset`` of several.
        owner: Who needs them, for messages.

    Raises:
        ValueError: Samples have no candidate file, or two samples would have one number.
    """
    source, key = dataset, KEY
    if isinstance(dataset, MultiSourceDataset):
        dataset.full_init()
        names = [
            name
            for name, part in zip(dataset.source_names, dataset.datasets, strict=True)
            if any(_parts(part, key, owner, strict=False))
        ]
        if len(names) != 1:
            raise ValueError(
                f'{owner} keeps targets for each sample and needs one source of {KEY}.sources with candidate sets '
                f'(mmssl.PartialLabelDataset), got {names or "none"}; join several by a ConcatDataset inside of one '
                'source, which numbers them through'
            )
        source, key = dataset.datasets[dataset.source_names.index(names[0])], f'{KEY}.sources.{names[0]}'
    elif hasattr(dataset, 'datasets'):
        raise ValueError(
            f'{owner} keeps targets for each sample, but the parts of {KEY} ({type(dataset).__name__}) number their '
            "samples from 0 each: put it into dict(type='mmssl.MultiSourceDataset', sources=dict(labeled=...)), which "
            'numbers them through'
        )
    digest, names, classes, samples = hashlib.sha256(), [], 0, 0
    for part, offset in _parts(source, key, owner):
        part.full_init()
        classes = part.candidates.shape[1]
        samples += len(part.candidates)
        digest.update(f'{part.candidates.shape}\n'.encode())
        digest.update((_numbers(part) + offset).tobytes())
        digest.update(np.packbits(part.candidates).tobytes())
        names.append(str(part.candidate_file))
    length = full_length(source)
    digest.update(f'{length}\n'.encode())
    origin = f'{" and ".join(names)} ({samples} samples, {classes} classes, sha256 {digest.hexdigest()[:12]})'
    return PartialLabelSamples(length, classes, digest.digest(), origin)


def register_samples(model: Any, dataset: Any) -> None:
    """Give the objective of a ``mmssl.PartialLabelClassifier`` a row of targets for each sample of its training set.

    Args:
        model: The classifier.
        dataset: See :func:`partial_label_samples`.

    Raises:
        ValueError: As there, the classes differ, or the model keeps no targets.
    """
    targets = getattr(getattr(model, 'objective', None), 'targets', None)
    if targets is None:
        raise ValueError(
            'custom_hooks: mmssl.SampleTargetsHook needs a mmssl.PartialLabelClassifier whose model.objective keeps '
            f'targets for each sample, such as mmssl.PRODENLoss, got model.type={type(model).__name__} with the '
            f'objective {type(getattr(model, "objective", None)).__name__}; remove the hook'
        )
    samples = partial_label_samples(dataset)
    if samples.num_classes != targets.num_classes:
        raise ValueError(
            f'model.classifier.head.num_classes is {targets.num_classes}, but the candidate sets are {samples.origin}'
        )
    targets.set_samples(samples.length, samples.digest, samples.origin)


def _parts(
    dataset: Any, key: str, owner: str, offset: int = 0, strict: bool = True
) -> Iterator[tuple[PartialLabelDataset, int]]:
    """Every data set with candidate sets inside of wrappers, and what is added to the numbers of its samples."""
    if isinstance(dataset, PartialLabelDataset):
        yield dataset, offset
    elif hasattr(dataset, 'datasets'):
        for part in dataset.datasets:
            yield from _parts(part, key, owner, offset, strict)
            offset += full_length(part)
    elif hasattr(dataset, 'dataset'):
        yield from _parts(dataset.dataset, key, owner, offset, strict)
    elif strict:
        raise ValueError(
            f'{owner} keeps targets for each sample, which are checked against the candidate file: {key} must be a '
            f'mmssl.PartialLabelDataset, got {" and ".join(type(leaf).__name__ for leaf in leaf_datasets(dataset))}'
        )


def _numbers(part: PartialLabelDataset) -> np.ndarray:
    """``sample_idx`` of each sample of a part."""
    if isinstance(part.dataset, Subset):
        return np.array(part.dataset.indices, np.int64)
    return np.arange(len(part.candidates), dtype=np.int64)
