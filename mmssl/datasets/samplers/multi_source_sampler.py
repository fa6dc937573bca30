"""Sampler that mixes several data sources in a fixed ratio, exactly and without state."""

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from mmengine.dataset import ConcatDataset
from mmengine.dist import get_dist_info, sync_random_seed
from mmengine.logging import MessageHub, print_log
from torch.utils.data import Sampler

from mmssl.registry import DATA_SAMPLERS

from .draw import Draw


def nearest_batch_sizes(batch_size: int, source_ratio: Sequence[int]) -> list[int]:
    """Batch sizes closest to ``batch_size`` that a source ratio divides, smaller one first.

    Args:
        batch_size: The wish, per GPU.
        source_ratio: Images of each source in one unit.

    Returns:
        ``[batch_size]`` if it is divisible; else the neighbours on both sides, without 0.

    Examples:
        >>> nearest_batch_sizes(8, [1, 2])
        [6, 9]
        >>> nearest_batch_sizes(12, [1, 2])
        [12]
        >>> nearest_batch_sizes(1, [1, 4])
        [5]
    """
    unit = sum(source_ratio)
    below = batch_size // unit * unit
    if below == batch_size:
        return [batch_size]
    return [size for size in (below, below + unit) if size > 0]


def seeded_permutation(length: int, seed: int, source: int, pass_number: int) -> np.ndarray:
    """Order in which one pass over one source visits its images; the same on every machine and numpy version.

    It sorts raw 64-bit numbers of a bit generator: numpy keeps those streams stable, while the algorithm of
    ``Generator.permutation`` may change between releases.

    Args:
        length: Number of images, > 0.
        seed: Seed of the sampler, >= 0.
        source: Number of the source; each one has its own order, also when two are equally long.
        pass_number: 0 for the first pass. Any pass can be made without making those before it.

    Returns:
        Permutation of ``range(length)``, int64, shape (length,).
    """
    bits = np.random.PCG64(np.random.SeedSequence((seed, source, pass_number))).random_raw(length)
    return np.argsort(bits, kind='stable')


@DATA_SAMPLERS.register_module()
class MultiSourceSampler(Sampler):
    """Yields images of several sources in units of a fixed ratio.

    Each source is an endless stream of shuffled passes. A **unit** holds ``source_ratio[0]`` draws of source 0, then
    ``source_ratio[1]`` of source 1, and so on: global unit ``j`` holds the draws ``[j * ratio, (j + 1) * ratio)`` of
    each source, and rank ``r`` of ``W`` yields the units ``r, r + W, r + 2 W, ...``. So

    - every batch whose size is a multiple of ``sum(source_ratio)`` has exactly that ratio, on every rank, and the size
      is written once, in the data loader;
    - the global batch does not depend on how many ranks share it;
    - every draw is a function of its number: there is no state to save, and :meth:`skip` costs one shuffle.

    "Epoch" means one pass over the source that needs most units; the other sources are repeated (see
    :func:`describe_sources` for how often).

    Args:
        dataset: The concatenated sources: ``mmssl.MultiSourceDataset`` or any mmengine ``ConcatDataset``.
        source_ratio: Images of each source in one unit, integers > 0, as many as there are sources.
        batch_size: Batch size per GPU, checked against the ratio and used for the log, nothing else: the data loader's
            is what counts. Not needed. Default: None, not checked here.
        shuffle: False visits each source in its own order, again and again. Default: True.
        infinite: True for ``IterBasedTrainLoop``: iteration never ends. False for ``EpochBasedTrainLoop``: one epoch is
            ``len(self)`` indices, and the next epoch goes on in the streams where the last one ended. Default: True.
        seed: Non-negative integer, equal on all ranks. mmengine's runner passes ``randomness.seed``. Default: None,
            drawn by rank 0 and shared.

    Raises:
        TypeError: ``dataset`` is no ``ConcatDataset``.
        ValueError: A source is empty, or the ratio, batch size or seed is not as described.
    """

    describes_itself: ClassVar[bool] = True

    def __init__(self,
                 dataset: ConcatDataset,
                 source_ratio: Sequence[int],
                 batch_size: int | None = None,
                 shuffle: bool = True,
                 infinite: bool = True,
                 seed: int | None = None) -> None:
        if not isinstance(dataset, ConcatDataset):
            raise TypeError('train_dataloader.dataset: mmssl.MultiSourceSampler needs several sources, in a '
                            f'`mmssl.MultiSourceDataset` or an mmengine `ConcatDataset`, got {type(dataset).__name__}')
        self.source_names = source_names(dataset)
        _check_ratio(source_ratio, self.source_names)
        self.rank, self.world_size = get_dist_info()
        self.dataset = dataset
        self.source_ratio = [int(ratio) for ratio in source_ratio]
        self.unit_size = sum(self.source_ratio)
        self.shuffle = shuffle
        self.infinite = infinite
        # Calling len() also completes a data set that was built with lazy_init=True.
        self.source_sizes = [len(source) for source in dataset.datasets]
        for name, size in zip(self.source_names, self.source_sizes, strict=True):
            if size == 0:
                raise ValueError(f'train_dataloader.dataset: source `{name}` has no image, so it cannot fill its share '
                                 f'of the batch (train_dataloader.sampler.source_ratio={self.source_ratio})')
        self.batch_size = batch_size
        if batch_size is not None:
            self.check_batch_size(batch_size, key='train_dataloader.sampler.batch_size')
        seed = sync_random_seed() if seed is None else seed
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
            raise ValueError(f'train_dataloader.sampler.seed must be an integer >= 0 or None, got {seed!r}')
        self.seed = int(seed)

        units = max(
            math.ceil(size / ratio) for size, ratio in zip(self.source_sizes, self.source_ratio, strict=True))
        self.num_units = math.ceil(units / self.world_size)
        self.epoch = 0
        self._epochs_skipped = 0
        self._start = 0
        self._warned = False
        if self.rank == 0 and self.describes_itself:
            for line in describe_sources(self, batch_size):
                print_log(line, logger='current')

    def check_batch_size(self, batch_size: int, key: str = 'train_dataloader.batch_size') -> None:
        """Refuse a batch size that the ratio does not divide.

        Args:
            batch_size: Images per GPU and iteration.
            key: Config key for the message.

        Raises:
            ValueError: Not a positive multiple of ``sum(source_ratio)``; names the nearest ones.
        """
        if isinstance(batch_size, bool) or not isinstance(batch_size, (int, np.integer)) or batch_size <= 0:
            raise ValueError(f'{key} must be an integer > 0, got {batch_size!r}')
        if batch_size % self.unit_size:
            sizes = ' or '.join(map(str, nearest_batch_sizes(batch_size, self.source_ratio)))
            raise ValueError(f'{key}={batch_size} cannot be split exactly in the ratio '
                             f'train_dataloader.sampler.source_ratio={self.source_ratio}: it must be a multiple of '
                             f'{self.unit_size}; nearest: {sizes}')

    def skip(self, num_samples: int) -> None:
        """Go to an absolute position, so that a resumed run continues where it stopped. No image is loaded.

        Args:
            num_samples: Indices of this rank that were already consumed since the start of training (iterations times
                batch size), >= 0. The next ``iter()`` starts there.

        Raises:
            ValueError: Negative position.
        """
        if num_samples < 0:
            raise ValueError(f'mmssl.MultiSourceSampler.skip: the position must be >= 0, got {num_samples}')
        if self.infinite:
            self._start = num_samples
        else:
            # mmengine's iteration-based loop counts epochs from 0 again after a resume.
            epochs, self._start = divmod(num_samples, len(self))
            self._epochs_skipped = epochs - self.epoch

    def set_epoch(self, epoch: int) -> None:
        """Start epoch ``epoch`` (called by mmengine's loops and hooks).

        Args:
            epoch: Number of the epoch, from 0.

        Raises:
            ValueError: The sampler is infinite, but the loop waits for the end of an epoch.
        """
        max_epochs = MessageHub.get_current_instance().get_info('max_epochs')
        if self.infinite:
            if max_epochs is not None and max_epochs > 1:
                raise ValueError('train_dataloader.sampler: an infinite sampler never ends an epoch, but train_cfg '
                                 f'asks for max_epochs={max_epochs}. Set train_dataloader.sampler.infinite=False, or '
                                 'train by iterations (train_cfg.type="IterBasedTrainLoop")')
            return
        if epoch > 0 and max_epochs == 1 and not self._warned:
            self._warned = True
            print_log(
                'train_dataloader.sampler.infinite=False under an iteration-based loop: mmengine restarts the data '
                'loader, and sleeps 2 seconds, after each pass. Leave `infinite` at True',
                logger='current',
                level=logging.WARNING)
        if epoch != self.epoch:
            self.epoch, self._start = epoch, 0

    def __len__(self) -> int:
        """Indices of this rank in one epoch: one pass over the source that needs most units, in whole units."""
        return self.num_units * self.unit_size

    def __iter__(self) -> Iterator[Draw]:
        if self.infinite:
            position, stop = self._start, None
        else:
            first = (self.epoch + self._epochs_skipped) * len(self)
            position, stop = first + self._start, first + len(self)
        plan = [(source, ratio, place) for source, ratio in enumerate(self.source_ratio) for place in range(ratio)]
        offsets = np.cumsum([0, *self.source_sizes]).tolist()
        # The pass that each source is in: its number and its order. Positions only grow, so one is enough.
        orders: list[tuple[int, np.ndarray]] = [(-1, np.empty(0, np.int64)) for _ in self.source_sizes]
        while stop is None or position < stop:
            local_unit, within = divmod(position, self.unit_size)
            source, ratio, place = plan[within]
            draw = (local_unit * self.world_size + self.rank) * ratio + place
            size = self.source_sizes[source]
            pass_number, rest = divmod(draw, size)
            if self.shuffle:
                if orders[source][0] != pass_number:
                    orders[source] = (pass_number, seeded_permutation(size, self.seed, source, pass_number))
                rest = int(orders[source][1][rest])
            yield Draw(offsets[source] + rest, source, draw, self.seed)
            position += 1


@contextmanager
def described_elsewhere() -> Iterator[None]:
    """No sampler made inside the block logs its sources: the caller has done it, and knows the length of the run."""
    before = MultiSourceSampler.describes_itself
    MultiSourceSampler.describes_itself = False
    try:
        yield
    finally:
        MultiSourceSampler.describes_itself = before


def source_names(dataset: ConcatDataset) -> list[str]:
    """Names of the sources: those of a ``MultiSourceDataset``, else ``datasets[0]``, ``datasets[1]``, ..."""
    names = getattr(dataset, 'source_names', None)
    return list(names) if names is not None else [f'datasets[{i}]' for i in range(len(dataset.datasets))]


def describe_sources(sampler: MultiSourceSampler,
                     batch_size: int | None = None,
                     max_iters: int | None = None) -> list[str]:
    """One line for each source: images, share of the batch, passes.

    Args:
        sampler: The sampler of the training data loader.
        batch_size: Batch size per GPU. Default: None, the lines speak of units.
        max_iters: Length of the training in iterations, for the total number of passes. Default: None.

    Returns:
        As many lines as there are sources.
    """
    world, lines = sampler.world_size, []
    epoch_units = sampler.num_units * world
    for name, size, ratio in zip(sampler.source_names, sampler.source_sizes, sampler.source_ratio, strict=True):
        parts = [f'source `{name}`: {size} image{"s" * (size != 1)}']
        if batch_size is None:
            parts.append(f'{ratio} of {sampler.unit_size} in every unit of the batch')
        else:
            share = batch_size // sampler.unit_size * ratio
            parts.append(f'{share} of {batch_size} per GPU and iteration, {share * world} of {batch_size * world} on '
                         f'{world} GPU{"s" * (world != 1)}')
        length = '' if batch_size is None else f' ({_number(len(sampler) / batch_size)} iterations)'
        parts.append(f'{_number(epoch_units * ratio / size)} passes per epoch{length}')
        if batch_size is not None and max_iters is not None:
            draws = max_iters * (batch_size // sampler.unit_size) * world * ratio
            parts.append(f'{_number(draws / size)} passes in {max_iters} iterations')
        lines.append(', '.join(parts))
    return lines


def _number(value: float) -> str:
    """A count for people: whole when it is whole, else two decimals."""
    return f'{value:.0f}' if float(value).is_integer() else f'{value:.2f}'


def _check_ratio(source_ratio: Any, names: list[str]) -> None:
    """Refuse a ratio that is not one positive integer for each source."""
    key = 'train_dataloader.sampler.source_ratio'
    if isinstance(source_ratio, (str, bytes)) or not isinstance(source_ratio, Sequence):
        raise ValueError(f'{key} must be a list with one integer for each source {names}, got {source_ratio!r}')
    if len(source_ratio) != len(names):
        raise ValueError(f'{key}={list(source_ratio)} has {len(source_ratio)} entries, but there are {len(names)} '
                         f'sources: {names}')
    for name, ratio in zip(names, source_ratio, strict=True):
        if isinstance(ratio, bool) or not isinstance(ratio, (int, np.integer)) or ratio <= 0:
            raise ValueError(f'{key}={list(source_ratio)}: the share of `{name}` must be an integer > 0, got {ratio!r}')
