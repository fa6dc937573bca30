"""Weak augmentation of small images, and images that data sets hold themselves."""

import numpy as np
import pytest
import torch
from torch.nn.functional import pad

from mmssl.datasets.transforms import RandomPadCrop, ToBGR


def test_reflect_padding_and_places():
    """Every window of the padded image occurs, about equally often; padding is torch's reflection."""
    image = np.arange(5 * 6 * 3, dtype=np.uint8).reshape(5, 6, 3)
    padded = pad(torch.from_numpy(image).permute(2, 0, 1)[None].float(), (2, 2, 2, 2), mode='reflect')
    padded = padded[0].permute(1, 2, 0).numpy().astype(np.uint8)
    windows = {padded[y:y + 5, x:x + 5].tobytes(): (y, x) for y in range(5) for x in range(6)}
    assert len(windows) == 30
    count = dict.fromkeys(windows.values(), 0)
    crop = RandomPadCrop(crop_size=5, padding=2)
    for _ in range(3000):
        results = crop({'img': image})
        assert results['img'].flags.c_contiguous and results['img_shape'] == (5, 5)
        count[windows[results['img'].tobytes()]] += 1
    # 100 of each expected, with a standard deviation of 10.
    assert min(count.values()) > 55 and max(count.values()) < 150


def test_mirror_images():
    image = np.random.randint(0, 256, (6, 5, 3), np.uint8)[:5]
    crop = RandomPadCrop(5, 0, flip_prob=0.25)
    mirrored = 0
    for _ in range(400):
        results = crop({'img': image})
        assert (results['img'] == (image[:, ::-1] if results['flip'] else image)).all()
        mirrored += results['flip']
    assert 65 < mirrored < 140


def test_other_borders():
    image = np.full((4, 4), 7, np.uint8)
    seen = np.concatenate([RandomPadCrop(4, 2, 'constant', pad_val=9)({'img': image})['img'] for _ in range(20)])
    assert set(np.unique(seen)) == {7, 9}
    assert (RandomPadCrop(4, 2, 'edge')({'img': image})['img'] == 7).all()
    assert (RandomPadCrop(4, 0)({'img': image})['img'] == image).all()


@pytest.mark.parametrize('kwargs, message', [
    (dict(crop_size=0, padding=1), '`crop_size` must be an integer >= 1, got 0'),
    (dict(crop_size=4, padding=-1), '`padding` must be an integer >= 0'),
    (dict(crop_size=4, padding=1, flip_prob=1.5), r'`flip_prob` must be a number in \[0, 1\], got 1.5'),
    (dict(crop_size=4, padding=1, padding_mode='mirror'), "`padding_mode` must be one of .*, got 'mirror'"),
])
def test_wrong_crops(kwargs, message):
    with pytest.raises(ValueError, match=message):
        RandomPadCrop(**kwargs)


def test_too_small_images():
    with pytest.raises(ValueError, match=r'`crop_size`=32 is larger than an image of 4x6 pixels'):
        RandomPadCrop(32, 4)({'img': np.zeros((6, 4, 3), np.uint8)})


def test_to_bgr():
    rgb = np.random.randint(0, 256, (3, 4, 3), np.uint8)
    assert (ToBGR('rgb')({'img': rgb})['img'] == rgb[..., ::-1]).all()
    for gray in (rgb[..., 0], rgb[..., :1]):
        results = ToBGR('gray')({'img': gray})
        assert (results['img'] == np.repeat(rgb[..., :1], 3, axis=2)).all()
        assert results['img_shape'] == results['ori_shape'] == (3, 4)
    with pytest.raises(ValueError, match="`source`='gray', but the image has 3 channels"):
        ToBGR('gray')({'img': rgb})
    with pytest.raises(ValueError, match=r"`source` must be one of \['rgb', 'gray'\], got 'bgr'"):
        ToBGR('bgr')
