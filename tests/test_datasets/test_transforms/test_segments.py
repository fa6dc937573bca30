"""Loading, shrinking and packing of true segments, scribbles and odd images."""

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from mmcv.transforms import LoadImageFromFile
from PIL import Image
from scipy.io import savemat

from mmssl.datasets import LoadSegments, PackSegments, ShrinkImage, UnlabeledImageDataset


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / 'img').mkdir()
    cv2.imwrite(str(tmp_path / 'img/a.png'), np.random.randint(0, 256, (4, 6, 3), np.uint8))
    return tmp_path


def write_mat(path: Path, *maps: np.ndarray) -> None:
    """As BSDS500 nests them."""
    cell = np.empty((1, len(maps)), object)
    for index, values in enumerate(maps):
        entry = np.empty((1, 1), [('Segmentation', object), ('Boundaries', object)])
        entry[0, 0] = values.astype(np.uint16), np.zeros(values.shape, np.uint8)
        cell[0, index] = entry
    savemat(path, dict(groundTruth=cell))


def loaded(folder: Path, **options: Any) -> dict:
    results = dict(img=np.zeros((4, 6, 3), np.uint8), img_path=str(folder / 'img/a.png'))
    results.update(options.pop('results', {}))
    return LoadSegments(**options)(results)


def test_bsds_holds_a_map_for_each_person(folder: Path) -> None:
    maps = [np.arange(24).reshape(4, 6) + 240, np.ones((4, 6))]
    write_mat(folder / 'a.mat', *maps)
    # 255 is a segment there.
    np.testing.assert_array_equal(loaded(folder, results=dict(seg_map_path=str(folder / 'a.mat')))['gt_segments'], maps)


def test_pictures_hold_numbers_and_unknown_pixels(folder: Path) -> None:
    values = np.array([[0, 1, 2, 255, 7, 7]] * 4, np.uint8)
    picture = Image.fromarray(values, mode='P')
    picture.putpalette([200, 10, 30] * 256)
    picture.save(folder / 'a_truth.png')
    segments = loaded(folder, results=dict(seg_map_path=str(folder / 'a_truth.png')))['gt_segments']
    np.testing.assert_array_equal(segments, [[[0, 1, 2, -1, 7, 7]] * 4])
    cv2.imwrite(str(folder / 'many.png'), np.array([[0, 1000, 255, 3, 3, 3]] * 4, np.uint16))
    segments = loaded(folder, ignore_index=0, results=dict(seg_map_path=str(folder / 'many.png')))['gt_segments']
    np.testing.assert_array_equal(segments, [[[-1, 1000, 255, 3, 3, 3]] * 4])


def test_scribbles_of_a_file_or_a_folder(folder: Path) -> None:
    (folder / 'scribbles').mkdir()
    cv2.imwrite(str(folder / 'scribbles/a.png'), np.array([[0, 1, 255, 255, 255, 2]] * 4, np.uint8))
    for place in (folder / 'scribbles', folder / 'scribbles/a.png'):
        found = loaded(folder, scribbles=place)['gt_scribbles']
        np.testing.assert_array_equal(found, [[0, 1, -1, -1, -1, 2]] * 4)
    other = loaded(folder, scribbles=folder / 'scribbles', results=dict(img_path='b.png'))
    assert 'gt_scribbles' not in other and 'gt_segments' not in other


def test_wrong_files_are_named(folder: Path) -> None:
    def load(name: str) -> None:
        loaded(folder, results=dict(seg_map_path=str(folder / name)))

    cv2.imwrite(str(folder / 'color.png'), np.zeros((4, 6, 3), np.uint8))
    with pytest.raises(ValueError, match=r"color\.png' must hold one whole number .* shape \(4, 6, 3\)"):
        load('color.png')
    (folder / 'text.png').write_text('no picture')
    with pytest.raises(ValueError, match=r"text\.png' is no picture"):
        load('text.png')
    cv2.imwrite(str(folder / 'small.png'), np.zeros((3, 6), np.uint8))
    with pytest.raises(ValueError, match=r"small\.png' has the size \(3, 6\), but the image .*a\.png' has \(4, 6\)"):
        load('small.png')
    savemat(folder / 'other.mat', dict(something=1))
    with pytest.raises(ValueError, match=r"other\.mat' is no truth of BSDS500.*groundTruth"):
        load('other.mat')
    with pytest.raises(FileNotFoundError, match=r'`scribbles`=.*nowhere'):
        LoadSegments(scribbles=folder / 'nowhere')


@pytest.mark.parametrize('size, max_side, expected', [
    ((40, 20), 10, (10, 5)), ((10, 5), 10, (10, 5)), ((10, 5), None, (10, 5)), ((1, 300), 30, (1, 30)),
])  # fmt: skip
def test_images_are_shrunk_but_never_enlarged(size: tuple, max_side: int | None, expected: tuple) -> None:
    results = dict(img=np.zeros((*size, 3), np.uint8), img_shape=size, ori_shape=size,
                   gt_scribbles=np.full(size, -1), gt_segments=np.zeros((2, *size)))  # fmt: skip
    results = ShrinkImage(max_side)(results)
    assert results['img'].shape == (*expected, 3) and results['img_shape'][:2] == expected
    assert results['gt_scribbles'].shape == expected and (results['gt_scribbles'] == -1).all()
    assert results['gt_scribbles'].dtype == np.int64
    # The truth stays, and predictions come to it.
    assert results['gt_segments'].shape[1:] == size and results['ori_shape'] == size


@pytest.mark.parametrize('mode', ['L', 'RGBA', 'P', '1', 'CMYK', 'I;16'])
def test_any_kind_of_picture_has_three_channels(mode: str, tmp_path: Path) -> None:
    path = tmp_path / ('a.jpg' if mode == 'CMYK' else 'a.png')
    if mode == 'I;16':
        cv2.imwrite(str(path), np.full((5, 7), 40000, np.uint16))
    else:
        Image.new('RGB', (7, 5), (156, 156, 156)).convert(mode).save(path)
    dataset = UnlabeledImageDataset(str(path), pipeline=[LoadImageFromFile(), LoadSegments(), PackSegments()])
    assert len(dataset) == 1
    packed = dataset[0]
    assert packed['inputs'].shape == (3, 5, 7) and 'gt_segments' not in packed['data_samples']
    assert packed['data_samples'].ori_shape == (5, 7)
    if mode != '1':
        assert (packed['inputs'].float() - 156).abs().max() <= 8


def test_truth_is_packed_with_all_people(folder: Path) -> None:
    (folder / 'truth').mkdir()
    write_mat(folder / 'truth/a.mat', np.ones((4, 6)), np.zeros((4, 6)))
    dataset = UnlabeledImageDataset(
        'img', data_root=str(folder), seg_map_path='truth', seg_map_suffix='.mat',
        pipeline=[LoadImageFromFile(), LoadSegments(), ShrinkImage(3), PackSegments()])  # fmt: skip
    packed = dataset[0]
    assert packed['inputs'].shape == (3, 2, 3)
    assert packed['data_samples'].gt_segments.data.shape == (2, 4, 6)
