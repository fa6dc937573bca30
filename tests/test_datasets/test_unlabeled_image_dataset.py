"""Images without labels, from folders, globs and lists."""

import builtins
import os
import subprocess
import sys

import cv2
import numpy as np
import pytest

from mmssl.datasets import UnlabeledImageDataset
from mmssl.registry import DATASETS


@pytest.fixture
def root(tmp_path):
    for name in ('img/b.jpg', 'img/a.jpg', 'img/c.png', 'img/sub/d.jpg', 'img/.hidden.jpg', 'img/.cache/e.jpg',
                 'img/notes.txt', 'more/f.JPG', 'ann/a.png', 'ann/b.png'):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == '.txt':
            path.write_text('nothing')
        else:
            cv2.imwrite(str(path), np.full((4, 5, 3), 100, np.uint8))
    (tmp_path / 'splits').mkdir()
    return tmp_path


def names(data, root):
    return [os.path.relpath(data.get_data_info(i)['img_path'], root) for i in range(len(data))]


@pytest.mark.parametrize('kwargs, expected', [
    (dict(img_path='img'), ['img/a.jpg', 'img/b.jpg', 'img/c.png', 'img/sub/d.jpg']),
    (dict(img_path='img', recursive=False), ['img/a.jpg', 'img/b.jpg', 'img/c.png']),
    (dict(img_path='img', suffix='.png'), ['img/c.png']),
    (dict(img_path='img/*.jpg'), ['img/a.jpg', 'img/b.jpg']),
    (dict(img_path='img/**/*.jpg'), ['img/a.jpg', 'img/b.jpg', 'img/sub/d.jpg']),
    (dict(img_path='*/*', suffix=['.jpg']), ['img/a.jpg', 'img/b.jpg', 'more/f.JPG']),
    (dict(img_path=['more', 'img/*.png']), ['more/f.JPG', 'img/c.png']),
    (dict(img_path=['img/a*', 'img/*.jpg']), ['img/a.jpg', 'img/b.jpg']),
])
def test_folders_and_globs(root, kwargs, expected):
    data = DATASETS.build(dict(type='mmssl.UnlabeledImageDataset', data_root=str(root), **kwargs))
    assert names(data, root) == expected


@pytest.mark.parametrize('text, kwargs, expected', [
    ('b\na\n', dict(img_path='img'), ['img/b.jpg', 'img/a.jpg']),
    ('# tool: make_splits\n# seed: 0\n\nsub/d\n', dict(img_path='img'), ['img/sub/d.jpg']),
    ('img/a.jpg\tann/a.png\nimg/b.jpg\tann/b.png\n', {}, ['img/a.jpg', 'img/b.jpg']),
    ('img/a.jpg ann/a.png\n', dict(img_path='img'), ['img/a.jpg']),
    ('c\r\na.jpg\r\n', dict(img_path='img'), ['img/c.png', 'img/a.jpg']),
    ('\ufeffa\n', dict(img_path='img'), ['img/a.jpg']),
    ('a\nf\n', dict(img_path=['img', 'more'], suffix=['.jpg', '.JPG']), ['img/a.jpg', 'more/f.JPG']),
])
def test_lists(root, text, kwargs, expected):
    (root / 'splits/u.txt').write_text(text, encoding='utf-8')
    data = UnlabeledImageDataset(data_root=str(root), ann_file='splits/u.txt', **kwargs)
    assert names(data, root) == expected


def test_list_as_img_path_and_several_lists(root):
    (root / 'splits/one.txt').write_text('img/a.jpg\n')
    (root / 'splits/two.txt').write_text('img/b.jpg\n')
    data = UnlabeledImageDataset(data_root=str(root), img_path=['splits/one.txt', 'more'])
    assert names(data, root) == ['img/a.jpg', 'more/f.JPG']
    data = UnlabeledImageDataset(data_root=str(root), ann_file=['splits/one.txt', 'splits/two.txt'])
    assert names(data, root) == ['img/a.jpg', 'img/b.jpg']


def test_names_with_spaces(root):
    cv2.imwrite(str(root / 'img/my cat 1.jpg'), np.zeros((2, 2, 3), np.uint8))
    (root / 'splits/u.txt').write_text('img/my cat 1.jpg\n')
    assert len(UnlabeledImageDataset(data_root=str(root), ann_file='splits/u.txt')) == 1
    (root / 'splits/u.txt').write_text('my cat 1\n')
    assert len(UnlabeledImageDataset(data_root=str(root), img_path='img', ann_file='splits/u.txt')) == 1


def test_exclude(root):
    """Labeled and unlabeled images in one folder: the rest of the folder is unlabeled."""
    (root / 'splits/labeled.txt').write_text('# header\na\nelsewhere\n')
    data = UnlabeledImageDataset(data_root=str(root), img_path='img', exclude='splits/labeled.txt')
    assert names(data, root) == ['img/b.jpg', 'img/c.png', 'img/sub/d.jpg']
    data = UnlabeledImageDataset(data_root=str(root), img_path='img', exclude=['img/sub', 'splits/labeled.txt'])
    assert names(data, root) == ['img/b.jpg', 'img/c.png']


@pytest.mark.parametrize('kwargs, error, words', [
    ({}, ValueError, '`img_path`'),
    (dict(img_path='none'), FileNotFoundError, r'`img_path`=.*none.* is neither'),
    (dict(img_path='img/*.webp'), ValueError, r'`img_path`=.*webp.* holds no image'),
    (dict(img_path='splits'), ValueError, r'`img_path`=.*splits.* holds no image'),
    (dict(img_path='img', suffix=[]), ValueError, '`suffix` is empty'),
    (dict(ann_file='splits/none.txt'), FileNotFoundError, r'`ann_file`: there is no list .*splits/none\.txt'),
    (dict(img_path='splits/none.txt'), FileNotFoundError, '`img_path`'),
    (dict(img_path='img', ann_file='splits/empty.txt'), ValueError, r'`ann_file`: .*empty\.txt.* names no image'),
    (dict(img_path='img', ann_file='splits/twice.txt'), ValueError, r"names the image 'a' twice, in lines 1 and 3"),
    (dict(img_path='img', ann_file=['splits/good.txt', 'splits/good2.txt']), ValueError,
     r'`ann_file`=.* names .*a\.jpg. twice'),
    (dict(img_path='img', ann_file='splits/gone.txt'), FileNotFoundError,
     r'of the 5 images .* 4 \(first: v, w, x\) are not in'),
    (dict(img_path='img', exclude='splits/none.txt'), FileNotFoundError, '`exclude`'),
    (dict(img_path='img/a.*', exclude='img'), ValueError, 'no image is left'),
    (dict(img_path='img', seg_map_path='ann'), FileNotFoundError, r'`seg_map_path`.* 2 \(first: .*ann/c\.png'),
])
def test_bad_input(root, kwargs, error, words):
    (root / 'splits/empty.txt').write_text('# nothing\n\n')
    (root / 'splits/twice.txt').write_text('a\nb\na\n')
    (root / 'splits/good.txt').write_text('a\n')
    (root / 'splits/good2.txt').write_text('a.jpg\n')
    (root / 'splits/gone.txt').write_text('v\na\nw\nx\ny\n')
    with pytest.raises(error, match=r'mmssl\.UnlabeledImageDataset: .*' + words):
        UnlabeledImageDataset(data_root=str(root), **kwargs)


def test_no_file_of_the_annotation_folder_is_touched(root, monkeypatch):
    """D1: neither while the data set is built nor while an image goes through a pipeline."""
    touched = []

    def trap(module, name):
        original = getattr(module, name)

        def guarded(path, *args, **kwargs):
            if isinstance(path, (str, os.PathLike)) and f'{os.sep}ann' in os.fspath(path):
                touched.append((name, os.fspath(path)))
            return original(path, *args, **kwargs)

        monkeypatch.setattr(module, name, guarded)

    for name in ('stat', 'lstat', 'listdir', 'scandir', 'open', 'access'):
        trap(os, name)
    for name in ('isfile', 'isdir', 'exists', 'islink', 'realpath'):
        trap(os.path, name)
    trap(builtins, 'open')
    with open(root / 'ann/a.png', 'rb'):
        assert touched, 'the trap works'
    touched.clear()
    (root / 'splits/u.txt').write_text('img/a.jpg\tann/a.png\nimg/b.jpg ann/b.png\n')
    pipeline = [dict(type='LoadImageFromFile'), dict(type='mmssl.TrackPadding')]
    for kwargs in (dict(img_path='img'), dict(img_path='img/*.jpg'), dict(ann_file='splits/u.txt')):
        data = UnlabeledImageDataset(data_root=str(root), pipeline=pipeline, **kwargs)
        item = data[0]
        assert item['img'].shape == (4, 5, 3)
        assert 'seg_map_path' not in item and 'gt_seg_map' not in item
    assert touched == []


def test_truth_for_analysis(root):
    data = UnlabeledImageDataset(data_root=str(root), img_path='img/[ab].jpg', seg_map_path='ann')
    assert [os.path.relpath(data.get_data_info(i)['seg_map_path'], root) for i in (0, 1)] == ['ann/a.png', 'ann/b.png']
    (root / 'splits/u.txt').write_text('img/a.jpg ann/b.png\n')
    data = UnlabeledImageDataset(data_root=str(root), ann_file='splits/u.txt', seg_map_path='ann')
    assert os.path.relpath(data.get_data_info(0)['seg_map_path'], root) == 'ann/b.png'
    info = data.get_data_info(0)
    assert info['label_map'] is None and info['reduce_zero_label'] is False


def test_classification_pipeline(root):
    pytest.importorskip('mmpretrain')
    pipeline = [
        dict(type='LoadImageFromFile'),
        dict(type='mmssl.MultiBranch', branches=['unsup_weak'], unsup_weak=[dict(type='mmpretrain.PackInputs')])
    ]
    item = UnlabeledImageDataset(data_root=str(root), img_path='img', pipeline=pipeline)[1]
    assert item['inputs']['unsup_weak'].shape == (3, 4, 5)
    assert item['data_samples']['unsup_weak'].img_path.endswith('b.jpg')


def test_broken_image_is_named(root):
    (root / 'img/b.jpg').write_bytes(b'not a picture')
    data = UnlabeledImageDataset(data_root=str(root), img_path='img', pipeline=[dict(type='LoadImageFromFile')])
    with pytest.raises(Exception, match=r'b\.jpg'):
        data[1]


def test_without_mmseg(tmp_path):
    """Classification users need not install mmseg; what needs it says so when it is built."""
    code = """
import sys
import mmssl.utils.optional as optional
optional.is_importable = lambda module: module != 'mmseg'
import mmssl.datasets
from mmssl.registry import DATASETS, TRANSFORMS
for registry, name in ((DATASETS, 'CamVidDataset'), (TRANSFORMS, 'PackSemiSegInputs')):
    try:
        registry.build(dict(type='mmssl.' + name))
    except ImportError as error:
        print(error)
print('mmseg' in sys.modules, DATASETS.get('mmssl.UnlabeledImageDataset').__name__)
"""
    result = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    first, second, third = result.stdout.strip().splitlines()[-3:]
    assert 'mmssl.CamVidDataset needs mmseg' in first and 'mmssl.PackSemiSegInputs needs mmseg' in second
    assert third == 'False UnlabeledImageDataset'


def test_folder_that_links_to_its_parent(root):
    (root / 'img/sub/loop').symlink_to(root / 'img', target_is_directory=True)
    assert len(UnlabeledImageDataset(data_root=str(root), img_path='img')) == 4


def test_indices_and_lazy_init_of_mmengine(root):
    data = UnlabeledImageDataset(data_root=str(root), img_path='img', indices=2, lazy_init=True)
    assert len(data) == 2
