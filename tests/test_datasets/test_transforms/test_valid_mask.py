"""Padding of unlabeled crops is tracked through mmseg's real transforms, to the pixel."""

import random

import cv2
import numpy as np
import pytest
import torch

pytest.importorskip('mmseg')

from mmengine.dataset import Compose
from mmengine.registry import init_default_scope

from mmssl.datasets import Pad, TrackPadding

KEY = 200  # Every real pixel is at least this bright; every padded one is 0.


@pytest.fixture(autouse=True)
def scope():
    init_default_scope('mmseg')


def sample(height=40, width=60, truth=False):
    """An image in which no pixel is like another one, at least KEY bright."""
    rng = np.random.default_rng(0)
    results = dict(
        img=rng.integers(KEY, 256, (height, width, 3), dtype=np.uint8),
        img_shape=(height, width),
        ori_shape=(height, width),
        img_path='x.jpg',
        seg_fields=[])
    if truth:
        results['gt_seg_map'] = rng.integers(0, 4, (height, width), dtype=np.uint8)
        results['seg_fields'] = ['gt_seg_map']
    return results


def packed(transforms, **kwargs):
    branches = ['unsup_weak', 'unsup_strong']
    photometric = dict(type='PhotoMetricDistortion')
    pipeline = Compose([
        dict(type='mmssl.TrackPadding'), *transforms,
        dict(
            type='mmssl.MultiBranch',
            branches=branches,
            unsup_weak=[dict(type='mmssl.PackSemiSegInputs')],
            unsup_strong=[photometric, dict(type='mmssl.PackSemiSegInputs')])
    ])
    return pipeline(sample(**kwargs))


RESIZE = dict(type='RandomResize', scale=(80, 60), ratio_range=(0.5, 1.5), keep_ratio=True)
CROP = dict(type='RandomCrop', crop_size=(48, 48), cat_max_ratio=1.0)
FLIP = dict(type='RandomFlip', prob=0.5)
PAD = dict(type='mmssl.Pad', size=(64, 64))


@pytest.mark.parametrize('transforms', [
    [RESIZE, CROP, FLIP],
    [RESIZE, CROP, PAD, FLIP],
    [RESIZE, PAD, CROP, FLIP],
    [PAD, RESIZE, CROP, FLIP],
    [RESIZE, CROP, FLIP, dict(PAD, center=True)],
    [dict(type='RandomRotate', prob=1.0, degree=30), CROP, PAD],
    [dict(type='RandomRotate', prob=1.0, degree=30, auto_bound=True), FLIP],
    [dict(type='Resize', scale=(64, 64), keep_ratio=False), dict(type='RandomFlip', prob=1.0, direction='vertical')],
    [dict(type='RandomCutOut', prob=1.0, n_holes=2, cutout_shape=[(8, 8)], fill_in=(0, 0, 0), seg_fill_in=255)],
    [dict(type='ResizeToMultiple', size_divisor=32), CROP],
    [dict(type='SegRescale', scale_factor=1.0), CROP, PAD],
], ids=lambda transforms: '-'.join(t['type'] for t in transforms))
@pytest.mark.parametrize('seed', range(4))
def test_valid_marks_exactly_the_real_pixels(transforms, seed):
    random.seed(seed), np.random.seed(seed), torch.manual_seed(seed)
    result = packed(transforms)
    image = result['inputs']['unsup_weak']
    weak, strong = result['data_samples']['unsup_weak'], result['data_samples']['unsup_strong']
    valid = weak.valid_mask.data
    assert valid.dtype == torch.bool and valid.shape == (1, *image.shape[1:])
    real = image.min(0).values > 0
    if 'Rotate' in transforms[0]['type']:
        # The image is blended with its border, the map is not: blended pixels are neither real nor plain padding.
        assert not (valid[0] & ~real).any(), 'padding that counts as valid'
        assert not ((image.min(0).values >= KEY) & ~valid[0]).any(), 'real pixels that do not count'
    elif transforms[0] is PAD and RESIZE in transforms:
        # cv2 puts the grid of nearest-neighbor maps half a pixel beside that of images, for labels as well.
        blurred, got = real.numpy().astype(np.uint8), valid[0].numpy()
        assert not got[cv2.dilate(blurred, np.ones((3, 3))) == 0].any()
        assert got[cv2.erode(blurred, np.ones((5, 5))) == 1].all()
    else:
        assert torch.equal(valid[0], real)
    # Weak and strong views share their geometry.
    assert torch.equal(valid, strong.valid_mask.data)
    assert weak.img_shape == strong.img_shape
    assert not torch.equal(image, result['inputs']['unsup_strong']), 'the strong view is another picture'


def test_weak_and_strong_are_the_same_pixels():
    """Geometry only: with the identity as strong transform, both views are equal to the last pixel."""
    pipeline = Compose([
        dict(type='mmssl.TrackPadding'), RESIZE, CROP, FLIP,
        dict(
            type='mmssl.MultiBranch',
            branches=['unsup_weak', 'unsup_strong'],
            unsup_weak=[dict(type='mmssl.PackSemiSegInputs')],
            unsup_strong=[dict(type='mmssl.PackSemiSegInputs')])
    ])
    for _ in range(5):
        inputs = pipeline(sample())['inputs']
        assert torch.equal(inputs['unsup_weak'], inputs['unsup_strong'])


def test_truth_for_analysis_passes_through():
    crop = dict(CROP, cat_max_ratio=0.75)
    weak = packed([RESIZE, crop, FLIP, PAD], truth=True)['data_samples']['unsup_weak']
    truth, valid = weak.gt_sem_seg.data, weak.valid_mask.data
    assert truth.shape == valid.shape
    assert torch.equal(truth != 255, valid), 'padding is ignored in the truth, and invalid'


def test_without_tracking_nothing_is_packed():
    result = Compose([dict(type='mmssl.PackSemiSegInputs')])(sample())
    assert 'valid_mask' not in result['data_samples']
    assert 'gt_sem_seg' not in result['data_samples']
    assert result['data_samples'].img_path == 'x.jpg'


@pytest.mark.parametrize('transforms', [
    [dict(type='Pad', size=(64, 64))],
    [dict(type='Pad', size=(64, 64)), dict(type='RandomCrop', crop_size=(20, 20))],
    [dict(type='Pad', size_divisor=32), dict(type='RandomFlip', prob=1.0)],
    [dict(type='CenterCrop', crop_size=(20, 20))],
], ids=lambda transforms: '-'.join(t['type'] for t in transforms))
def test_transforms_that_forget_the_map_are_refused(transforms):
    with pytest.raises(ValueError, match=r'valid_mask.*no longer follows.*mmssl\.Pad'):
        packed(transforms)


def test_track_padding_needs_an_image():
    with pytest.raises(KeyError, match=r'mmssl\.TrackPadding'):
        TrackPadding()(dict(img_path='x.jpg'))


def test_track_padding_does_not_change_shared_lists():
    fields = []
    first = TrackPadding()(dict(img=np.zeros((2, 3, 3)), seg_fields=fields))
    second = TrackPadding()(first)
    assert fields == [] and second['seg_fields'] == ['valid_mask']
    assert TrackPadding()(dict(img=np.zeros((2, 3, 3))))['valid_mask'].shape == (2, 3)


def test_pad_in_the_middle():
    """As CPS does: half on each side, the odd pixel right and below."""
    results = TrackPadding()(sample(height=3, width=4, truth=True))
    image = results['img'].copy()
    results = Pad(size=(9, 6), center=True, pad_val=dict(img=7, seg=255))(results)
    assert results['img'].shape == (6, 9, 3)
    assert (results['img'][1:4, 2:6] == image).all()
    outside = np.ones((6, 9), bool)
    outside[1:4, 2:6] = False
    assert (results['img'][outside] == 7).all()
    assert (results['gt_seg_map'][outside] == 255).all() and (results['gt_seg_map'][~outside] < 4).all()
    assert (results['valid_mask'] == ~outside).all()


def test_pad_value_one_is_not_valid():
    results = Pad(size=(6, 6), pad_val=dict(img=0, seg=1))(TrackPadding()(sample(height=3, width=4)))
    assert results['valid_mask'].sum() == 12


def test_reflected_padding_is_not_valid():
    results = Pad(size=(6, 6), padding_mode='reflect')(TrackPadding()(sample(height=5, width=4)))
    assert results['valid_mask'].sum() == 20
    with pytest.raises(ValueError, match=r'mmssl\.Pad: `center=True`'):
        Pad(size=(6, 6), padding_mode='reflect', center=True)
