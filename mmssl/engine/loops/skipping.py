"""Going to a position of a data loader without loading what comes before it."""

import logging
from collections.abc import Iterator
from typing import Any

from mmengine.dataset import InfiniteSampler
from mmengine.logging import print_log
from mmengine.runner.loops import _InfiniteDataloaderIterator
from torch.utils.data import BatchSampler, DataLoader

from mmssl.datasets.samplers import MultiSourceSampler


def advance(loader: DataLoader, num_batches: int) -> int:
    """Let the next iteration over a data loader begin after ``num_batches`` batches; no sample is loaded.

    The indices of the skipped batches are drawn from its batch sampler, whichever it is, so the position is exact. The
    iteration-based loop starts the sampler again at its end, under the number of that pass; so does this.

    Args:
        loader: Not iterated yet, with a batch sampler.
        num_batches: How many, >= 0.

    Returns:
        Number of the pass that the position is in, from 0.
    """
    epoch, batches = 0, iter(loader.batch_sampler)
    for _ in range(num_batches):
        if next(batches, None) is None:
            epoch += 1
            _set_epoch(loader, epoch)
            batches = iter(loader.batch_sampler)
            if next(batches, None) is None:
                raise ValueError('train_dataloader: the sampler draws no batch, so there is nothing to resume')
    # A loader guards this attribute against assignment after it was built.
    loader.__dict__['batch_sampler'] = _Advanced(loader.batch_sampler, batches)
    return epoch


class SkippingIterator(_InfiniteDataloaderIterator):
    """Endless iterator of the iteration-based loop that starts no worker before it knows where to begin.

    Args:
        dataloader: The training data.
    """

    def __init__(self, dataloader: DataLoader) -> None:
        self._dataloader = dataloader
        self._iterator: Any = None
        self._epoch = 0

    def __next__(self) -> Any:
        """The next batch."""
        if self._iterator is None:
            self._iterator = iter(self._dataloader)
        return super().__next__()

    def skip_iter(self, num_iters: int) -> None:
        """Go to iteration ``num_iters``, counted from 0: at once if the sampler can, else by drawing indices."""
        loader = self._dataloader
        batch_sampler = getattr(loader, 'batch_sampler', None)
        if batch_sampler is None:
            print_log(
                'train_dataloader has no batch sampler that could skip, so the batches before the position of the '
                'resumed run are loaded once more',
                logger='current',
                level=logging.WARNING)
            for _ in range(num_iters):
                next(self)
            return
        sampler = getattr(batch_sampler, 'sampler', None)
        endless = isinstance(sampler, InfiniteSampler) or (isinstance(sampler, MultiSourceSampler) and sampler.infinite)
        if endless and type(batch_sampler) is BatchSampler and hasattr(sampler, 'skip'):
            sampler.skip(num_iters * batch_sampler.batch_size)
        else:
            self._epoch = advance(loader, num_iters)


class NotStarted:
    """What a loop of mmengine gets in the place of a data loader, so that it starts no worker by itself.

    Args:
        dataloader: The data loader.
    """

    def __init__(self, dataloader: DataLoader) -> None:
        self.dataset = dataloader.dataset

    def __iter__(self) -> Iterator[Any]:
        return iter(())


class _Advanced:
    """A batch sampler that continues ``batches`` once and is as before afterwards."""

    def __init__(self, inner: Any, batches: Iterator[Any]) -> None:
        self._inner, self._batches = inner, batches

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __len__(self) -> int:
        return len(self._inner)

    def __iter__(self) -> Iterator[Any]:
        # A generator, since a loader with workers asks for an iterator twice before it uses one.
        batches, self._batches = self._batches, None
        yield from self._inner if batches is None else batches


def _set_epoch(loader: DataLoader, epoch: int) -> None:
    for sampler in (loader.sampler, getattr(loader.batch_sampler, 'sampler', None)):
        if hasattr(sampler, 'set_epoch'):
            sampler.set_epoch(epoch)
            return
