"""Named sources: meta information, overlap, empty sources, and randomness that has no state."""

import random

import numpy as np
import pytest
import torch
from mmengine.dataset import BaseDataset, ConcatDataset
from mmengine.registry import TRANSFORMS
from torch.utils.data import DataLoader

from mmssl.datasets import Draw, MultiSourceDataset, MultiSourceSampler, stateless_randomness
from mmssl.registry import DATASETS


def noisy(results):
    """A "pipeline" that uses every generator."""
    results['noise'] = (random.random(), float(np.random.rand()), float(torch.rand(())))
    return results


class Paths(BaseDataset):
    """Items with the given image paths."""

    def __init__(self, paths=(), **kwargs):
        self.paths = list(paths)
        super().__init__(data_prefix={}, **kwargs)

    def load_data_list(self):
        return [{'img_path': str(path)} for path in self.paths]


@pytest.fixture(autouse=True)
def registered():
    DATASETS.register_module(name='ToyPaths', module=Paths, force=True)
    yield
    DATASETS.module_dict.pop('ToyPaths')


def source(*paths, **kwargs):
    return dict(type='mmssl.ToyPaths', paths=list(paths), pipeline=[noisy], **kwargs)


def sources(**kwargs):
    return dict(labeled=source('a', 'b', 'c'), unlabeled=source('d', 'e', 'f', 'g'), **kwargs)


def test_is_a_concat_dataset_with_names():
    data = DATASETS.build(dict(type='mmssl.MultiSourceDataset', sources=sources()))
    assert isinstance(data, ConcatDataset)
    assert data.source_names == ['labeled', 'unlabeled']
    assert len(data) == 7
    assert [data.get_data_info(i)['img_path'] for i in range(7)] == list('abcdefg')
    assert data[3]['img_path'] == 'd' and data[-1]['img_path'] == 'g'


def test_built_sources_and_wrappers():
    repeated = dict(type='RepeatDataset', times=2, dataset=source('a', 'b'))
    data = MultiSourceDataset(dict(labeled=repeated, unlabeled=Paths(['c'])))
    assert len(data) == 5


@pytest.mark.parametrize('bad, error, words', [
    ([source('a')], ValueError, r'sources must be a dict'),
    ({}, ValueError, r'sources must be a dict'),
    (dict(labeled=source('a'), unlabeled=3), TypeError, r'sources\.unlabeled must be a data set'),
    (dict(labeled=source('a'), unlabeled=dict(paths=[])), KeyError, r'sources\.unlabeled has no `type`'),
    (dict(labeled=source('a', colour=1)), TypeError, r'sources\.labeled.*colour'),
    (dict(labeled=source('a'), unlabeled=source(ann_file='splits/none.txt')), ValueError,
     r'sources\.unlabeled has no image \(ann_file=.splits/none\.txt'),
])
def test_bad_sources(bad, error, words):
    with pytest.raises(error, match=r'train_dataloader\.dataset\.' + words):
        MultiSourceDataset(bad)


def test_empty_source_without_serialization():
    with pytest.raises(ValueError, match=r'sources\.unlabeled has no image'):
        MultiSourceDataset(dict(labeled=source('a'), unlabeled=source(serialize_data=False)))


@pytest.mark.parametrize('seed', [-1, 0.5, True])
def test_bad_seed(seed):
    with pytest.raises(ValueError, match=r'train_dataloader\.dataset\.seed'):
        MultiSourceDataset(sources(), seed=seed)


def test_metainfo_of_unlabeled_may_be_absent():
    meta = dict(classes=('x', 'y'), palette=[[0, 0, 0], [1, 1, 1]])
    data = MultiSourceDataset(
        dict(unlabeled=source('d', metainfo=dict(palette=[], label_map=None)), labeled=source('a', metainfo=meta)))
    assert data.metainfo['classes'] == ('x', 'y')
    assert data.metainfo['palette'] == [[0, 0, 0], [1, 1, 1]]
    assert data.metainfo['label_map'] is None


def test_metainfo_must_agree():
    first, second = source('a', metainfo=dict(classes=('x', 'y'))), source('b', metainfo=dict(classes=['x', 'z']))
    with pytest.raises(ValueError, match=r'sources\.one and .*sources\.two disagree .*`classes`.*ignore_keys'):
        MultiSourceDataset(dict(one=first, two=second))
    assert MultiSourceDataset(dict(one=first, two=second), ignore_keys='classes').metainfo['classes'] == ('x', 'y')
    # A list equals a tuple: a dumped config has only lists.
    same = source('b', metainfo=dict(classes=['x', 'y']))
    assert MultiSourceDataset(dict(one=first, two=same)).metainfo['classes'] == ('x', 'y')


def test_overlap_is_an_error(tmp_path):
    """D3: by real path, so another spelling or a link hides nothing."""
    for name in ('one.jpg', 'two.jpg', 'three.jpg'):
        (tmp_path / name).touch()
    (tmp_path / 'link').symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / 'alias.jpg').symlink_to(tmp_path / 'two.jpg')
    labeled = source(tmp_path / 'one.jpg', tmp_path / 'two.jpg')
    for shared in (tmp_path / 'one.jpg', tmp_path / 'link' / 'one.jpg', tmp_path / 'alias.jpg'):
        both = dict(labeled=labeled, unlabeled=source(tmp_path / 'three.jpg', shared))
        with pytest.raises(ValueError, match=r'`labeled` \(2 images\) and `unlabeled` \(2\) share 1 image,') as info:
            MultiSourceDataset(both)
        assert str(shared) in str(info.value) and 'train_dataloader.dataset.allow_overlap=True' in str(info.value)
        assert len(MultiSourceDataset(both, allow_overlap=True)) == 4
    assert len(MultiSourceDataset(dict(labeled=labeled, unlabeled=source(tmp_path / 'three.jpg')))) == 3


def test_lazy_init_checks_later():
    lazy = source('a', lazy_init=True)
    data = MultiSourceDataset(dict(labeled=lazy, unlabeled=lazy), lazy_init=True)
    with pytest.raises(ValueError, match='share 1 image'):
        data.full_init()


def branch_source(path, branches, **pipelines):
    return dict(
        type='mmssl.ToyPaths',
        paths=[path],
        pipeline=[dict(type='mmssl.MultiBranch', branches=branches, **(pipelines or {branches[0]: [noisy]}))])


def test_branches_must_agree():
    with pytest.raises(ValueError, match=r"got \['sup'\] in `labeled` and \['unsup_weak'\] in `unlabeled`"):
        MultiSourceDataset(
            dict(labeled=branch_source('a', ['sup']), unlabeled=branch_source('b', ['unsup_weak'])))
    with pytest.raises(ValueError, match=r'sources\.unlabeled\.pipeline must end in `mmssl\.MultiBranch`'):
        MultiSourceDataset(dict(labeled=branch_source('a', ['sup']), unlabeled=source('b')))


def test_every_branch_must_be_filled():
    with pytest.raises(ValueError, match=r"no source has a pipeline for \['unsup_strong'\]"):
        MultiSourceDataset(
            dict(
                labeled=branch_source('a', ['sup', 'unsup_strong'], sup=[noisy]),
                unlabeled=branch_source('b', ['sup', 'unsup_strong'], sup=[noisy])))


def noise_of(data, draws):
    return [data[draw]['noise'] for draw in draws]


def test_same_draw_same_numbers_whatever_came_before():
    data = MultiSourceDataset(sources())
    draw = Draw(3, source=1, draw=5, seed=9)
    first = data[draw]['noise']
    random.seed(1), np.random.seed(2), torch.manual_seed(3)
    assert data[draw]['noise'] == first
    others = [Draw(3, 1, 6, 9), Draw(3, 0, 5, 9), Draw(3, 1, 5, 8)]
    for noise in noise_of(data, others):
        assert all(a != b for a, b in zip(noise, first, strict=True)), 'draw, source and seed all count'


def test_own_seed_overrides_the_sampler():
    own = MultiSourceDataset(sources(), seed=4)
    assert own[Draw(3, 1, 5, seed=9)]['noise'] == own[Draw(3, 1, 5, seed=10)]['noise']
    assert own[Draw(3, 1, 5, seed=9)]['noise'] == MultiSourceDataset(sources())[Draw(3, 1, 5, seed=4)]['noise']


def test_outer_state_is_restored():
    data = MultiSourceDataset(sources())

    def outer(touch):
        random.seed(1), np.random.seed(2), torch.manual_seed(3)
        if touch:
            data[Draw(0, 0, 0, 1)]
        return random.random(), np.random.rand(), torch.rand(3).tolist(), torch.initial_seed()

    assert outer(True) == outer(False)


def test_outer_state_is_restored_after_an_error():
    random.seed(1)
    expected = random.random()
    random.seed(1)
    with pytest.raises(RuntimeError), stateless_randomness(1, 2):
        random.random()
        raise RuntimeError
    assert random.random() == expected


def test_plain_index_is_not_reseeded():
    data = MultiSourceDataset(sources())
    assert data[0]['noise'] != data[0]['noise'], 'else any other sampler would repeat the same augmentation'


def test_redrawn_item_is_reproducible():
    """A pipeline that rejects an image makes mmengine draw another one: also the same one each time."""

    def picky(results):
        results = noisy(results)
        return None if results['noise'][1] < 0.7 else results

    cfg = dict(one=dict(type='mmssl.ToyPaths', paths=list('abcdefgh'), pipeline=[picky]))
    data = MultiSourceDataset(cfg)
    draws = [Draw(i, 0, i, 0) for i in range(8)]
    first = [(data[draw]['img_path'], data[draw]['noise']) for draw in draws]
    assert first == [(data[draw]['img_path'], data[draw]['noise']) for draw in draws]
    assert [path for path, _ in first] != list('abcdefgh'), 'some were redrawn'


@pytest.mark.parametrize('persistent', [False, True])
def test_workers_make_the_same_items(persistent):
    """S9 and resume: 0 and 2 workers, and a run that starts in the middle, give the same augmented items."""
    data = MultiSourceDataset(sources())

    def items(workers, skip=0):
        sampler = MultiSourceSampler(data, [1, 2], seed=3)
        sampler.skip(skip * 6)
        loader = DataLoader(
            data, batch_size=6, sampler=sampler, num_workers=workers, collate_fn=list,
            persistent_workers=persistent and workers > 0)
        iterator = iter(loader)
        return [[(item['img_path'], item['noise']) for item in next(iterator)] for _ in range(8 - skip)]

    single = items(0)
    assert items(2) == single
    assert items(2, skip=5) == single[5:]
    assert items(0, skip=5) == single[5:]
    assert len({noise for batch in single for _, noise in batch}) == 48, 'no augmentation is repeated'


def test_ranks_make_the_global_batch(monkeypatch):
    from mmssl.datasets.samplers import multi_source_sampler
    data = MultiSourceDataset(sources())

    def items(rank, world):
        monkeypatch.setattr(multi_source_sampler, 'get_dist_info', lambda: (rank, world))
        iterator = iter(MultiSourceSampler(data, [1, 2], seed=3))
        return [(data[draw]['img_path'], data[draw]['noise']) for draw in (next(iterator) for _ in range(24 // world))]

    assert sorted(items(0, 2) + items(1, 2)) == sorted(items(0, 1))


def test_transform_registry_is_untouched():
    """`MultiBranch` is ours; the root registry must not know it without the prefix."""
    assert TRANSFORMS.get('mmssl.MultiBranch') is not None
    assert 'MultiBranch' not in TRANSFORMS.module_dict
