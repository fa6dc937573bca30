"""``mmssl.Cached`` gives what the plain transforms give, once made and never made again."""

import random

import numpy as np
import pytest
import torch
from mmcv.transforms import BaseTransform

from mmssl.datasets.transforms import Cached


class Load(BaseTransform):
    """Counts how often it loads; rejects images that are called so."""

    def __init__(self) -> None:
        self.calls = 0

    def transform(self, results):
        self.calls += 1
        if results['img_path'] == 'broken':
            return None
        results['img'] = np.full((2, 3), len(results['img_path']))
        results['seg_fields'].append('gt')
        results['ori_shape'] = (2, 3)
        return results


def sample(path='a', seg_map_path=None, index=0):
    return dict(img_path=path, seg_map_path=seg_map_path, seg_fields=[], sample_idx=index)


def test_second_time_is_a_copy_of_the_first():
    load = Load()
    cached = Cached([load])
    first = cached(sample())
    first['img'][:] = 99
    first['seg_fields'].append('changed later')
    second = cached(sample(index=7))
    assert load.calls == 1
    np.testing.assert_array_equal(second['img'], np.full((2, 3), 1))
    assert second['ori_shape'] == (2, 3)
    assert second['sample_idx'] == 7, 'what the data set says of this draw is not cached'


def test_a_list_that_a_transform_fills_in_place_is_the_same_as_without_cache():
    plain = Load()(sample())
    cached = Cached([Load()])
    cached(sample())
    assert cached(sample())['seg_fields'] == plain['seg_fields'] == ['gt']


def test_images_and_masks_tell_samples_apart():
    load = Load()
    cached = Cached([load])
    for _ in range(2):
        assert cached(sample('a'))['img'][0, 0] == 1
        assert cached(sample('abc'))['img'][0, 0] == 3
        cached(sample('a', 'mask'))
    assert load.calls == 3


def test_rejected_samples_stay_rejected():
    cached = Cached([Load()])
    assert cached(sample('broken')) is None
    assert cached(sample('broken')) is None


def test_max_images_bounds_the_memory():
    load = Load()
    cached = Cached([load], max_images=1)
    for _ in range(3):
        cached(sample('a'))
        cached(sample('ab'))
    assert load.calls == 1 + 3


@pytest.mark.parametrize('draw', [random.random, np.random.rand, lambda: torch.rand(1)])
def test_random_transforms_are_refused(draw):
    def transform(results):
        draw()
        return results

    with pytest.raises(ValueError, match='must be deterministic'):
        Cached([transform])(sample())


@pytest.mark.parametrize('arguments', [dict(transforms=[]), dict(transforms='Load'), dict(transforms=None)])
def test_no_transforms_is_an_error(arguments):
    with pytest.raises(ValueError, match='`transforms` must be a list'):
        Cached(**arguments)


@pytest.mark.parametrize('value', [0, -1, True, 1.5, '3'])
def test_wrong_bound_is_an_error(value):
    with pytest.raises(ValueError, match='`max_images`'):
        Cached([Load()], max_images=value)


def test_without_a_path_is_an_error():
    with pytest.raises(KeyError, match='must be first'):
        Cached([Load()])({'img': 0})
