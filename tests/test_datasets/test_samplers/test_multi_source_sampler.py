"""The order, the composition and the errors of the multi-source sampler."""

import pickle
import time
from collections import Counter
from itertools import islice

import numpy as np
import pytest
from mmengine.dataset import BaseDataset, ConcatDataset
from mmengine.logging import MessageHub
from torch.utils.data import DataLoader

from mmssl.datasets import Draw, MultiSourceSampler, describe_sources, nearest_batch_sizes
from mmssl.datasets.samplers import multi_source_sampler


class Numbers(BaseDataset):
    """``length`` items without images."""

    def __init__(self, length, **kwargs):
        self.length = length
        super().__init__(serialize_data=False, **kwargs)

    def load_data_list(self):
        return [{'number': i} for i in range(self.length)]


def concat(*lengths):
    return ConcatDataset([Numbers(length) for length in lengths])


def take(sampler, count):
    return list(islice(iter(sampler), count))


@pytest.fixture
def ranks(monkeypatch):
    """Function that makes the samplers of all ranks of a job."""

    def make(world, *args, **kwargs):
        samplers = []
        for rank in range(world):
            monkeypatch.setattr(multi_source_sampler, 'get_dist_info', lambda rank=rank: (rank, world))
            samplers.append(MultiSourceSampler(*args, **kwargs))
        return samplers

    return make


@pytest.fixture(autouse=True)
def fresh_message_hub():
    hub = MessageHub.get_current_instance()
    before = dict(hub.runtime_info)
    hub.runtime_info.pop('max_epochs', None)
    yield
    hub.runtime_info.clear()
    hub.runtime_info.update(before)


def test_golden_sequence():
    """The published order: a change breaks the resume of every running training."""
    sampler = MultiSourceSampler(concat(5, 7), [1, 2], seed=3)
    assert [int(i) for i in take(sampler, 24)] == GOLDEN


GOLDEN = [0, 5, 11, 4, 7, 6, 1, 8, 9, 3, 10, 8, 2, 11, 7, 3, 10, 5, 1, 6, 9, 2, 7, 8]


def test_units_are_exact_and_every_image_is_drawn_once_per_pass():
    sampler = MultiSourceSampler(concat(6, 8), [1, 2], seed=0)
    draws = take(sampler, 3 * 24)
    for start in range(0, len(draws), 3):
        assert [draw.source for draw in draws[start:start + 3]] == [0, 1, 1]
    for source, size, offset in ((0, 6, 0), (1, 8, 6)):
        own = [draw for draw in draws if draw.source == source]
        assert [draw.draw for draw in own] == list(range(len(own)))
        for start in range(0, len(own) - size + 1, size):
            assert sorted(own[start:start + size]) == list(range(offset, offset + size))
        assert own[:size] != own[size:2 * size], 'each pass has its own order'


def test_sources_of_equal_length_have_different_orders():
    draws = take(MultiSourceSampler(concat(50, 50), [1, 1], seed=0), 100)
    assert [int(i) for i in draws[::2]] != [int(i) - 50 for i in draws[1::2]]


def test_seed_decides_the_order():
    first, second, other = (take(MultiSourceSampler(concat(9, 9), [1, 1], seed=seed), 30) for seed in (5, 5, 6))
    assert first == second != other


def test_no_shuffle_cycles_in_order():
    draws = take(MultiSourceSampler(concat(2, 3), [1, 2], shuffle=False, seed=0), 12)
    assert [int(i) for i in draws] == [0, 2, 3, 1, 4, 2, 0, 3, 4, 1, 2, 3]


def test_permutation_is_a_shuffle():
    """Every image is equally likely in every place (chi-square, 4 degrees of freedom, p = 1e-5)."""
    counts = np.zeros((5, 5))
    for number in range(2000):
        counts[np.arange(5), multi_source_sampler.seeded_permutation(5, 0, 0, number)] += 1
    chi_square = ((counts - 400)**2 / 400).sum(1)
    assert chi_square.max() < 28.5
    assert chi_square.max() > 0


@pytest.mark.parametrize('world', [1, 2, 3, 4])
def test_ranks_share_the_global_stream(ranks, world):
    """The global batch is the same, whatever the number of ranks, and each rank holds the same mixture (S6)."""
    alone = take(ranks(1, concat(10, 13), [1, 3], seed=1)[0], 4 * 12)
    per_rank = [take(sampler, 4 * 12 // world) for sampler in ranks(world, concat(10, 13), [1, 3], seed=1)]
    for own in per_rank:
        assert Counter(draw.source for draw in own) == {0: 12 // world, 1: 36 // world}
    together = sorted((draw.source, draw.draw, int(draw)) for own in per_rank for draw in own)
    assert together == sorted((draw.source, draw.draw, int(draw)) for draw in alone)
    assert len(set(together)) == len(together), 'no draw is made twice'


def test_draw_is_an_integer_that_survives_pickling():
    draw = Draw(7, source=1, draw=12, seed=3)
    copy = pickle.loads(pickle.dumps(draw))
    assert copy == 7 and (copy.source, copy.draw, copy.seed) == (1, 12, 3)
    assert type(draw + 0) is int
    assert [10, 20, 30][Draw(1)] == 20


@pytest.mark.parametrize('position', [0, 1, 7, 24, 25, 1000])
@pytest.mark.parametrize('world', [1, 2])
def test_skip_goes_to_any_position(ranks, position, world):
    for straight, skipping in zip(
            ranks(world, concat(5, 8), [1, 2], seed=2), ranks(world, concat(5, 8), [1, 2], seed=2), strict=True):
        expected = take(straight, position + 40)[position:]
        skipping.skip(position)
        got = take(skipping, 40)
        assert [(int(d), d.source, d.draw) for d in got] == [(int(d), d.source, d.draw) for d in expected]


def test_skip_is_absolute():
    sampler = MultiSourceSampler(concat(5, 8), [1, 2], seed=2)
    expected = take(sampler, 30)
    sampler.skip(20)
    sampler.skip(10)
    assert take(sampler, 20) == expected[10:]


def test_skip_far_is_instant():
    """R1: iteration 10,000,000 of a batch of 16 costs one shuffle, not 160 million draws."""
    sampler = MultiSourceSampler(concat(10_000, 10_000), [1, 1], seed=0)
    start = time.perf_counter()
    sampler.skip(16 * 10_000_000)
    draw = next(iter(sampler))
    assert time.perf_counter() - start < 0.5
    assert draw.draw == 80_000_000


def test_skip_refuses_negative():
    with pytest.raises(ValueError, match='skip'):
        MultiSourceSampler(concat(5, 8), [1, 2], seed=2).skip(-1)


@pytest.mark.parametrize('world', [1, 2, 3])
def test_length_is_one_pass_over_the_source_that_needs_most(ranks, world):
    # 13 images at 3 per unit need 5 units, 4 images at 1 per unit need 4.
    samplers = ranks(world, concat(4, 13), [1, 3], seed=0)
    assert {len(sampler) for sampler in samplers} == {-(-5 // world) * 4}
    if world == 1:
        epoch = take(samplers[0], len(samplers[0]))
        assert {int(i) for i in epoch} == set(range(17)), 'an epoch holds every image'


def test_finite_epochs_go_on_where_the_last_one_ended():
    endless = take(MultiSourceSampler(concat(4, 13), [1, 3], seed=0), 3 * 20)
    sampler = MultiSourceSampler(concat(4, 13), [1, 3], seed=0, infinite=False)
    got = []
    for epoch in range(3):
        sampler.set_epoch(epoch)
        own = list(sampler)
        assert len(own) == len(sampler) == 20
        got += own
    assert got == endless
    sampler.set_epoch(1)
    assert list(sampler) == endless[20:40], 'a resumed run sets the epoch only'


def test_finite_skip():
    """As mmengine's iteration-based loop does: skip to an absolute position, then count epochs from 0 again."""
    endless = take(MultiSourceSampler(concat(4, 13), [1, 3], seed=0), 4 * 20)
    sampler = MultiSourceSampler(concat(4, 13), [1, 3], seed=0, infinite=False)
    sampler.set_epoch(0)
    sampler.skip(28)
    sampler.set_epoch(0)
    assert list(sampler) == endless[28:40]
    sampler.set_epoch(1)
    assert list(sampler) == endless[40:60]
    sampler.set_epoch(2)
    assert list(sampler) == endless[60:80]


def test_infinite_under_epochs_is_refused():
    """S4: such a training would never reach its second epoch."""
    sampler = MultiSourceSampler(concat(4, 4), [1, 1], seed=0)
    sampler.set_epoch(0)
    MessageHub.get_current_instance().update_info('max_epochs', 3)
    with pytest.raises(ValueError, match=r'train_dataloader\.sampler\.infinite=False'):
        sampler.set_epoch(0)


def test_finite_under_iterations_warns_once(monkeypatch):
    lines = []
    monkeypatch.setattr(multi_source_sampler, 'print_log', lambda text, **kwargs: lines.append((text, kwargs)))
    sampler = MultiSourceSampler(concat(4, 4), [1, 1], seed=0, infinite=False)
    lines.clear()
    MessageHub.get_current_instance().update_info('max_epochs', 1)
    for epoch in (0, 1, 2):
        sampler.set_epoch(epoch)
    assert len(lines) == 1 and 'infinite=False' in lines[0][0] and lines[0][1]['level'] >= 30


@pytest.mark.parametrize('ratio, words', [
    ([1], '2 sources'),
    ([1, 1, 1], '3 entries'),
    ([1, 0], r'must be an integer > 0, got 0'),
    ([1, -2], 'got -2'),
    ([1, 1.5], 'got 1.5'),
    ([1, True], 'got True'),
    ('11', 'must be a list'),
    (2, 'must be a list'),
    (None, 'must be a list'),
])
def test_bad_ratio(ratio, words):
    with pytest.raises(ValueError, match=r'train_dataloader\.sampler\.source_ratio.*' + words):
        MultiSourceSampler(concat(4, 4), ratio, seed=0)


@pytest.mark.parametrize('ratio', [[1, 1], [1, 4], [2, 3], [1, 1, 2], [1, 7]])
def test_batch_size_must_split_exactly(ratio):
    """S2: every size from 1 to 64 is split exactly, or refused with the nearest sizes that can be."""
    unit = sum(ratio)
    data = concat(*[9] * len(ratio))
    for size in range(1, 65):
        if size % unit == 0:
            sampler = MultiSourceSampler(data, ratio, batch_size=size, seed=0)
            count = Counter(draw.source for draw in take(sampler, size))
            assert [count[source] for source in range(len(ratio))] == [r * size // unit for r in ratio]
            continue
        nearest = nearest_batch_sizes(size, ratio)
        assert all(near % unit == 0 and near > 0 and abs(near - size) < unit for near in nearest)
        with pytest.raises(ValueError, match=r'train_dataloader\.sampler\.batch_size') as info:
            MultiSourceSampler(data, ratio, batch_size=size, seed=0)
        for near in nearest:
            assert str(near) in str(info.value).split('nearest')[1]


@pytest.mark.parametrize('size', [0, -4, 2.0, True, '8'])
def test_bad_batch_size(size):
    with pytest.raises(ValueError, match=r'train_dataloader\.batch_size must be an integer > 0'):
        MultiSourceSampler(concat(4, 4), [1, 1], seed=0).check_batch_size(size)


@pytest.mark.parametrize('seed', [-1, 1.5, 'x'])
def test_bad_seed(seed):
    with pytest.raises(ValueError, match=r'train_dataloader\.sampler\.seed'):
        MultiSourceSampler(concat(4, 4), [1, 1], seed=seed)


def test_empty_source_is_named():
    """S1: not an endless loop, and within a second."""
    start = time.perf_counter()
    with pytest.raises(ValueError, match=r'`datasets\[1\]` has no image'):
        MultiSourceSampler(concat(4, 0), [1, 1], seed=0)
    assert time.perf_counter() - start < 1


def test_single_dataset_is_refused():
    with pytest.raises(TypeError, match='MultiSourceDataset'):
        MultiSourceSampler(Numbers(4), [1], seed=0)


def test_seed_none_is_shared():
    assert isinstance(MultiSourceSampler(concat(4, 4), [1, 1]).seed, int)


def test_description(ranks):
    sampler = ranks(2, concat(46, 321), [1, 3], seed=0)[0]
    first, second = describe_sources(sampler, batch_size=8, max_iters=1000)
    assert 'source `datasets[0]`: 46 images, 2 of 8 per GPU and iteration, 4 of 16 on 2 GPUs' in first
    assert '321 images, 6 of 8 per GPU and iteration, 12 of 16 on 2 GPUs' in second
    # 107 units, 54 for each rank: 108 * 3 draws of 321 images, 27 iterations.
    assert '1.01 passes per epoch (27 iterations)' in second
    assert '37.38 passes in 1000 iterations' in second
    assert 'in every unit' in describe_sources(sampler)[0]


def test_only_the_main_rank_logs(monkeypatch):
    lines = []
    monkeypatch.setattr(multi_source_sampler, 'print_log', lambda text, **kwargs: lines.append(text))
    for rank in (0, 1):
        monkeypatch.setattr(multi_source_sampler, 'get_dist_info', lambda rank=rank: (rank, 2))
        MultiSourceSampler(concat(4, 4), [1, 1], seed=0)
    assert len(lines) == 2


def test_no_second_description(monkeypatch):
    lines = []
    monkeypatch.setattr(multi_source_sampler, 'print_log', lambda text, **kwargs: lines.append(text))
    with multi_source_sampler.described_elsewhere():
        MultiSourceSampler(concat(4, 4), [1, 1], seed=0)
    assert lines == []
    MultiSourceSampler(concat(4, 4), [1, 1], seed=0)
    assert len(lines) == 2


@pytest.mark.parametrize('workers', [0, 2])
def test_data_loader_order_does_not_depend_on_workers(workers):
    data = concat(5, 7)
    loader = DataLoader(
        data,
        batch_size=6,
        sampler=MultiSourceSampler(data, [1, 2], seed=3),
        num_workers=workers,
        collate_fn=lambda batch: [(item['number'], item['sample_idx']) for item in batch])
    iterator = iter(loader)
    got = [item[0] for _ in range(4) for item in next(iterator)]
    expected = [int(i) if i.source == 0 else int(i) - 5 for i in take(MultiSourceSampler(data, [1, 2], seed=3), 24)]
    assert got == expected
