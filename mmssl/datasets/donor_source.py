"""Images that the training process loads on top of the batch, because it cannot know them before: donors of mixing."""

import os
import zlib
from collections.abc import Sequence
from typing import Any

from mmengine.dataset import Compose

from .samplers.multi_source_sampler import source_names
from .seeding import stateless_randomness
from .transforms.multi_branch import MultiBranch

# Keeps the augmentation of donors apart from that of the batch.
STREAM = 0xD0
KEY = 'train_dataloader.dataset.sources'


class DonorSource:
    """Loads single images of one source, each under random numbers that a resumed run draws again.

    Args:
        dataset: A data set with ``get_data_info``, such as mmengine's ``BaseDataset``.
        key: Its config key, for messages.
        branch: Branch that a pipeline of its own fills.
        pipeline: Transforms from loading to packing in place of the data set's own. Default: None, its own.

    Raises:
        ValueError: The pipeline cannot be built.
    """

    def __init__(self, dataset: Any, key: str, branch: str, pipeline: list[dict] | None = None) -> None:
        self.dataset, self.key, self.branch = dataset, key, branch
        self.pipeline = None if pipeline is None else Compose(pipeline)

    def __len__(self) -> int:
        return len(self.dataset)

    def __deepcopy__(self, memo: dict) -> 'DonorSource':
        # A copy of a model (a moving average, say) needs no second copy of the lists.
        return self

    def load(self, index: int, seed: int, step: int, place: int) -> dict[str, dict[str, Any]]:
        """Load and augment one image.

        Args:
            index: In [0, len).
            seed: >= 0; together with the two others it fixes the augmentation.
            step: >= 0.
            place: >= 0.

        Returns:
            ``inputs`` and ``data_samples`` by branch.

        Raises:
            ValueError: The pipeline does not pack, or rejects the image.
        """
        with stateless_randomness(STREAM, zlib.crc32(self.branch.encode()), seed, step, place):
            if self.pipeline is None:
                return self.dataset[index]
            packed = self.pipeline(self.dataset.get_data_info(index))
        if not isinstance(packed, dict) or not {'inputs', 'data_samples'} <= packed.keys():
            raise ValueError(
                'model.semi_train_cfg.copy_paste.pipeline must end in a packing transform (PackSegInputs) and may '
                f'reject no image; it returned {sorted(packed) if isinstance(packed, dict) else packed!r}'
            )
        return {key: {self.branch: packed[key]} for key in ('inputs', 'data_samples')}

    def fingerprint(self) -> int:
        """A number of the file names, in order; another folder gives the same number, another list another."""
        checksum = 0
        for index in range(len(self.dataset)):
            path = os.fspath(self.dataset.get_data_info(index).get('img_path', str(index)))
            # With the folder, since the frames of several clips have the same names.
            name = '/'.join(path.replace(os.sep, '/').split('/')[-2:])
            checksum = zlib.crc32(f'{name}\n'.encode(), checksum)
        return checksum


def find_source(dataset: Any, branch: str, owner: str = 'mmssl.AELHook') -> tuple[Any, str, int]:
    """The source that fills a branch.

    Args:
        dataset: A ``mmssl.MultiSourceDataset`` or a ``ConcatDataset``.
        branch: Name of the branch.
        owner: Who needs it, for messages.

    Returns:
        Its innermost data set, its config key, and its number among the sources.

    Raises:
        ValueError: Not exactly one plain data set does.
    """
    found = []
    sources = getattr(dataset, 'datasets', [dataset])
    names = source_names(dataset) if hasattr(dataset, 'datasets') else ['']
    for number, (name, source) in enumerate(zip(names, sources, strict=True)):
        while hasattr(source, 'dataset'):
            source = source.dataset
        transforms = getattr(getattr(source, 'pipeline', None), 'transforms', [])
        last = transforms[-1] if transforms else None
        if hasattr(source, 'datasets'):
            raise ValueError(
                f'{KEY}.{name} is made of several data sets, of which {owner} could not tell the images apart; '
                'use one (mmssl.UnlabeledImageDataset takes several folders and lists)'
            )
        if isinstance(last, MultiBranch) and branch in last.branch_pipelines:
            found.append((source, f'{KEY}.{name}', number))
    if len(found) != 1:
        what = 'no source fills' if not found else f'{", ".join(key for _, key, _ in found)} all fill'
        raise ValueError(
            f'{KEY}: {what} the branch `{branch}` (mmssl.MultiBranch); {owner} needs exactly one source for it '
            '(mmssl.UnlabeledImageDataset takes several folders and lists)'
        )
    return found[0]


def attach_sources(model: Any, dataset: Any, source_ratio: Sequence[int] | None, resumed: bool = False) -> None:
    """Hand the labeled and the unlabeled source to a model that loads donors itself (``mmssl.AELSegmentor``).

    Args:
        model: Has ``attach_sources``.
        dataset: The training data, a ``mmssl.MultiSourceDataset`` or a ``ConcatDataset``.
        source_ratio: Of the sampler; None if it has none.
        resumed: Whether training goes on from a checkpoint.

    Raises:
        ValueError: As :func:`find_source` and the model.
    """
    labeled, labeled_key, number = find_source(dataset, 'sup')
    unlabeled, unlabeled_key, _ = find_source(dataset, 'unsup_weak')
    model.attach_sources(
        labeled=DonorSource(labeled, labeled_key, 'sup', model.copy_paste_pipeline),
        unlabeled=DonorSource(unlabeled, unlabeled_key, 'unsup_weak'),
        class_names=labeled.metainfo.get('classes'),
        labeled_per_unit=None if source_ratio is None else source_ratio[number],
        resumed=resumed,
    )
