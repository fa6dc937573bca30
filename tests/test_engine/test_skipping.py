"""Going to a position of a data loader: the same batches as without, and none of the skipped ones is loaded."""

import time

import pytest
from mmengine.dataset import DefaultSampler, InfiniteSampler
from mmengine.runner.loops import _InfiniteDataloaderIterator
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

from mmssl.datasets import MultiSourceDataset, MultiSourceSampler
from mmssl.engine.loops.skipping import SkippingIterator, advance


class Numbers(Dataset):
    """7 numbers, and a record of which were loaded."""

    def __init__(self, length=7):
        self.length, self.loaded = length, []
        self.metainfo = {}

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        self.loaded.append(int(index))
        return int(index)

    def full_init(self):
        pass

    def get_data_info(self, index):
        return {}


class Reversed(BatchSampler):
    """A batch sampler of a user's own, with batches of changing size."""

    def __iter__(self):
        for length, batch in enumerate(super().__iter__(), start=1):
            yield batch[:length][::-1]


def multi_source(infinite):
    data = MultiSourceDataset(dict(a=Numbers(4), b=Numbers(7)), allow_overlap=True)
    return DataLoader(data, 3, sampler=MultiSourceSampler(data, [1, 2], seed=3, infinite=infinite), collate_fn=list)


def plain(sampler, **kwargs):
    data = Numbers()
    return DataLoader(data, batch_sampler=BatchSampler(sampler(data), 3, **kwargs), collate_fn=list)


LOADERS = {
    'infinite': lambda: plain(lambda data: InfiniteSampler(data, seed=3), drop_last=False),
    'infinite, in order': lambda: plain(lambda data: InfiniteSampler(data, False, seed=3), drop_last=False),
    'epochs': lambda: plain(lambda data: DefaultSampler(data, seed=3), drop_last=False),
    'epochs, whole batches': lambda: plain(lambda data: DefaultSampler(data, seed=3), drop_last=True),
    'several sources': lambda: multi_source(True),
    'several sources, epochs': lambda: multi_source(False),
    'own batch sampler': lambda: DataLoader(
        Numbers(), batch_sampler=Reversed(DefaultSampler(Numbers(), seed=3), 3, drop_last=False), collate_fn=list),
}  # yapf: disable


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(time, 'sleep', lambda _: None)  # mmengine's, after each pass


@pytest.mark.parametrize('skipped', [0, 1, 2, 3, 4, 11])
@pytest.mark.parametrize('name', LOADERS)
def test_same_batches_as_without(name, skipped):
    straight = _InfiniteDataloaderIterator(LOADERS[name]())
    batches = [next(straight) for _ in range(20)]
    loader = LOADERS[name]()
    iterator = SkippingIterator(loader)
    iterator.skip_iter(skipped)
    loaded = [source.loaded for source in getattr(loader.dataset, 'datasets', [loader.dataset])]
    assert loaded == [[]] * len(loaded)
    assert [next(iterator) for _ in range(20 - skipped)] == batches[skipped:]


@pytest.mark.parametrize('name', ['epochs', 'own batch sampler'])
def test_within_an_epoch(name):
    """The rest of this pass, then whole ones; the length stays."""
    straight, loader = LOADERS[name](), LOADERS[name]()
    assert advance(loader, 2) == 0
    assert list(loader) == list(straight)[2:]
    assert list(loader) == list(straight) and len(loader) == len(straight) == 3


def test_workers_start_at_the_position():
    data = Numbers()
    loader = DataLoader(data, batch_sampler=BatchSampler(DefaultSampler(data, seed=3), 3, drop_last=False),
                        collate_fn=list, num_workers=2, persistent_workers=True)  # yapf: disable
    iterator = SkippingIterator(loader)
    iterator.skip_iter(4)
    straight = _InfiniteDataloaderIterator(LOADERS['epochs']())
    batches = [next(straight) for _ in range(9)]
    assert [next(iterator) for _ in range(5)] == batches[4:]
    iterator._iterator._shutdown_workers()


def test_an_empty_sampler_is_an_error():
    data = Numbers()
    loader = DataLoader(data, batch_sampler=BatchSampler(RandomSampler(data), 8, drop_last=True))
    with pytest.raises(ValueError, match='draws no batch'):
        SkippingIterator(loader).skip_iter(1)


def test_data_without_a_batch_sampler_are_loaded():
    loader = DataLoader(Numbers(), batch_size=None)
    iterator = SkippingIterator(loader)
    iterator.skip_iter(2)
    assert int(next(iterator)) == 2
