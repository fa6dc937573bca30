"""Formats and errors of split lists."""

import doctest

import pytest

from mmssl.datasets.samplers import multi_source_sampler
from mmssl.utils import split_list
from mmssl.utils.split_list import read_split_list


def entries(tmp_path, text, suffixes=()):
    path = tmp_path / 'list.txt'
    path.write_text(text, encoding='utf-8')
    return [(entry.image, entry.label) for entry in read_split_list(path, suffixes)]


@pytest.mark.parametrize('text, expected', [
    ('2007_000032\n2007_000039\n', [('2007_000032', None), ('2007_000039', None)]),
    ('leftImg8bit/train/a/a_leftImg8bit.png\tgtFine/train/a/a_gtFine_labelTrainIds.png',
     [('leftImg8bit/train/a/a_leftImg8bit.png', 'gtFine/train/a/a_gtFine_labelTrainIds.png')]),
    ('JPEGImages/1.jpg SegmentationClass/1.png\n', [('JPEGImages/1.jpg', 'SegmentationClass/1.png')]),
    ('A/1.JPG   B/1.png\n', [('A/1.JPG', 'B/1.png')]),
    ('# tool: x\n#seed: 0\n\n  id_1  \n', [('id_1', None)]),
    ('my photo.jpg\n', [('my photo.jpg', None)]),
    ('my photo.jpg my mask.png\n', [('my photo.jpg', 'my mask.png')]),
    ('my photo\n', [('my photo', None)]),
    ('a.jpg\t\n', [('a.jpg', None)]),
    ('\ufeffa\r\nb\r\n', [('a', None), ('b', None)]),
])
def test_formats(tmp_path, text, expected):
    assert entries(tmp_path, text) == expected


def test_own_suffix_separates(tmp_path):
    assert entries(tmp_path, 'x.tile y.png', ['.tile']) == [('x.tile', 'y.png')]
    assert entries(tmp_path, 'x.tile y.png') == [('x.tile y.png', None)]


@pytest.mark.parametrize('text, words', [
    ('', 'names no image'),
    ('# only\n', 'names no image'),
    ('a\nb\na\n', r"image 'a' twice, in lines 1 and 3"),
    ('a.jpg m.png\nb.jpg m.png\n', r"label 'm.png' twice, in lines 1 and 2"),
])
def test_bad_lists(tmp_path, text, words):
    with pytest.raises(ValueError, match=words) as info:
        entries(tmp_path, text)
    assert 'list.txt' in str(info.value) and 'ann_file' in str(info.value)


def test_binary_list(tmp_path):
    (tmp_path / 'list.txt').write_bytes(b'\xff\xd8\xff\xe0 a picture')
    with pytest.raises(ValueError, match=r'ann_file: .*list\.txt.* is not a text file'):
        read_split_list(tmp_path / 'list.txt')


def test_missing_list(tmp_path):
    with pytest.raises(FileNotFoundError, match=r'my_key: there is no list .*none\.txt'):
        read_split_list(tmp_path / 'none.txt', owner='my_key')


@pytest.mark.parametrize('module', [split_list, multi_source_sampler])
def test_examples(module):
    result = doctest.testmod(module)
    assert result.attempted > 0 and result.failed == 0
