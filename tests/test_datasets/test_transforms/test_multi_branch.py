"""Branches of one sample, and what collating makes of several sources."""

import numpy as np
import pytest
from mmengine.dataset import BaseDataset, pseudo_collate

from mmssl.datasets import MultiBranch
from mmssl.registry import TRANSFORMS

BRANCHES = ['sup', 'unsup_weak', 'unsup_strong']


def pack(results):
    return dict(inputs=results['img'], data_samples=results['name'])


def brighten(results):
    results['img'] += 1
    results['name'] += '+'
    return results


def sample(value=0):
    return dict(img=np.full((2, 2), value), name=f's{value}')


def test_absent_branches_are_none():
    packed = MultiBranch(BRANCHES, sup=[pack])(sample())
    assert list(packed) == ['inputs', 'data_samples']
    assert list(packed['inputs']) == list(packed['data_samples']) == BRANCHES
    assert packed['inputs']['sup'].shape == (2, 2) and packed['data_samples']['sup'] == 's0'
    assert packed['inputs']['unsup_weak'] is None and packed['data_samples']['unsup_strong'] is None


@pytest.mark.parametrize('order', [('unsup_weak', 'unsup_strong'), ('unsup_strong', 'unsup_weak')])
def test_branches_do_not_see_each_other(order):
    """Whichever comes first, a transform that works in place changes one view only."""
    branches = ['sup', *order]
    transform = MultiBranch(branches, unsup_strong=[brighten, pack], unsup_weak=[pack])
    packed = transform(sample())
    assert packed['inputs']['unsup_weak'].max() == 0 and packed['inputs']['unsup_strong'].min() == 1
    assert packed['data_samples']['unsup_weak'] == 's0' and packed['data_samples']['unsup_strong'] == 's0+'
    assert not np.shares_memory(packed['inputs']['unsup_weak'], packed['inputs']['unsup_strong'])


def test_collates_with_other_sources():
    labeled, unlabeled = MultiBranch(BRANCHES, sup=pack), MultiBranch(BRANCHES, unsup_weak=[pack], unsup_strong=[pack])
    for samples in ([labeled(sample(0)), unlabeled(sample(1))], [unlabeled(sample(1)), labeled(sample(0))]):
        batch = pseudo_collate(samples)
        assert list(batch['inputs']) == BRANCHES
        for branch, count in dict(sup=1, unsup_weak=1, unsup_strong=1).items():
            assert len(batch['inputs'][branch]) == 2
            assert sum(item is not None for item in batch['inputs'][branch]) == count
            assert sum(item is not None for item in batch['data_samples'][branch]) == count


def test_rejected_view_rejects_the_sample():
    """mmengine then draws another image."""
    transform = MultiBranch(BRANCHES, unsup_weak=[pack], unsup_strong=[lambda results: None])
    assert transform(sample()) is None

    class Data(BaseDataset):

        def load_data_list(self):
            return [sample(value) for value in range(4)]

    odd = MultiBranch(BRANCHES, sup=[lambda results: results if results['img'][0, 0] == 3 else None, pack])
    data = Data(pipeline=[odd], data_prefix={}, serialize_data=False)
    assert data[0]['data_samples']['sup'] == 's3'


def test_built_from_config_and_without_samples():
    transform = TRANSFORMS.build(dict(type='mmssl.MultiBranch', branches=['sup'], sup=[lambda results: dict(inputs=1)]))
    assert transform(sample()) == dict(inputs=dict(sup=1), data_samples=dict(sup=None))
    assert "branches=['sup']" in repr(transform)


@pytest.mark.parametrize('branches, pipelines, words', [
    (['sup'], dict(unsup_weak=[pack]), r'pipeline for `unsup_weak`, which is not in `branches`=\[.sup.\]'),
    (['sup'], {}, 'no pipeline is given'),
    (['sup', 'sup'], dict(sup=[pack]), 'names a branch twice'),
    ([], dict(sup=[pack]), '`branches` must be a list'),
    ('sup', dict(sup=[pack]), '`branches` must be a list'),
    ([1], dict(sup=[pack]), '`branches` must be a list'),
    (['sup'], dict(sup=[]), 'pipeline of `sup` is empty'),
    (['sup'], dict(sup=None), 'pipeline of `sup` is empty'),
])
def test_bad_config(branches, pipelines, words):
    with pytest.raises(ValueError, match=r'mmssl\.MultiBranch.*' + words):
        MultiBranch(branches, **pipelines)


@pytest.mark.parametrize('last', [brighten, lambda results: 3, lambda results: dict(pack(results), extra=1)])
def test_pipeline_must_pack(last):
    with pytest.raises(ValueError, match='pipeline of `sup` must end in a packing transform'):
        MultiBranch(['sup'], sup=[last])(sample())
