"""STL-10, SVHN and class folders by list, on small files in the official formats."""

import sys

import cv2
import numpy as np
import pytest
from mmengine.config import Config
from mmengine.registry import DATASETS, DefaultScope

pytest.importorskip('mmpretrain')

from mmssl.datasets import STL10, SVHN, ClassFolderDataset, LabeledSubset, MultiSourceDataset, full_length


def keep(results):
    """A pipeline that returns all that it gets."""
    return results


@pytest.fixture
def stl10(tmp_path):
    """3 labeled, 2 test and 4 unlabeled images, and what they show: RGB, (N, 96, 96, 3)."""
    folder = tmp_path / 'stl10_binary'
    folder.mkdir()
    shown = {}
    for part, count in (('train', 3), ('test', 2), ('unlabeled', 4)):
        shown[part] = np.random.randint(0, 256, (count, 96, 96, 3), np.uint8)
        # The official order: image, channel, column, row.
        shown[part].transpose(0, 3, 2, 1).tofile(folder / f'{part}_X.bin')
    np.array([1, 10, 3], np.uint8).tofile(folder / 'train_y.bin')
    np.array([2, 2], np.uint8).tofile(folder / 'test_y.bin')
    return tmp_path, shown


def test_stl10(stl10):
    root, shown = stl10
    train = STL10(str(root), pipeline=[keep])
    assert [train.get_data_info(i)['gt_label'] for i in range(3)] == [0, 9, 2]
    assert (np.stack([train[i]['img'] for i in range(3)]) == shown['train']).all()
    everything = STL10(str(root), split='train+unlabeled', pipeline=[keep])
    assert len(everything) == 7 and everything[3]['sample_idx'] == 3
    assert 'gt_label' in everything[2] and 'gt_label' not in everything[3]
    assert (everything[6]['img'] == shown['unlabeled'][3]).all()
    assert everything[0]['img'].flags.writeable and everything[0]['img_shape'] == (96, 96)
    assert len(train.metainfo['classes']) == 10


def test_labeled_images_of_stl10_are_known_among_the_unlabeled(stl10):
    root, _ = stl10
    sources = dict(labeled=STL10(str(root), pipeline=[keep]), unlabeled=STL10(str(root), split='unlabeled+train'))
    with pytest.raises(ValueError, match=r'share 3 images, such as memory://STL10/'):
        MultiSourceDataset(sources)
    sources['unlabeled'] = STL10(str(root), split='unlabeled+train', pipeline=[keep])
    data = MultiSourceDataset(sources, include_labeled=False)
    assert [data[i]['sample_idx'] for i in range(len(data))] == [0, 1, 2, 0, 1, 2, 3]
    assert full_length(data.datasets[1]) == 7
    assert len(MultiSourceDataset(dict(labeled=sources['labeled'], unlabeled=STL10(str(root), split='unlabeled')))) == 7


def test_damaged_stl10(stl10):
    root, _ = stl10
    (root / 'stl10_binary' / 'test_X.bin').write_bytes(b'12345')
    with pytest.raises(ValueError, match=r'test_X.bin.* has 5 bytes, which is no number of images'):
        STL10(str(root), split='test')
    np.zeros(5, np.uint8).tofile(root / 'stl10_binary' / 'train_y.bin')
    with pytest.raises(ValueError, match="part 'train' has 3 images, but 5 labels"):
        STL10(str(root))
    with pytest.raises(FileNotFoundError, match=r'`data_root` lacks .*train_X.bin.*nothing is downloaded, .*stanford'):
        STL10(str(root / 'stl10_binary'))
    for split in ('val', 'train+train', '', 3):
        with pytest.raises(ValueError, match=r"`split` must be one of \['train', 'test', 'unlabeled'\]"):
            STL10(str(root), split=split)


def test_svhn(tmp_path, monkeypatch):
    scipy_io = pytest.importorskip('scipy.io')
    images = np.random.randint(0, 256, (5, 32, 32, 3), np.uint8)
    # The official order: row, column, channel, image; the digit 0 has label 10.
    content = dict(X=images.transpose(1, 2, 3, 0), y=np.array([[1], [10], [9], [10], [2]], np.uint8))
    scipy_io.savemat(tmp_path / 'train_32x32.mat', content)
    data = SVHN(str(tmp_path), pipeline=[keep])
    assert [data[i]['gt_label'] for i in range(5)] == [1, 0, 9, 0, 2]
    assert (np.stack([data[i]['img'] for i in range(5)]) == images).all()
    (tmp_path / 'test_32x32.mat').write_bytes(b'no such thing')
    with pytest.raises(ValueError, match=r'test_32x32.mat.* cannot be read'):
        SVHN(str(tmp_path), split='test')
    with pytest.raises(FileNotFoundError, match=r'extra_32x32.mat'):
        SVHN(str(tmp_path), split='train+extra')


def test_svhn_without_scipy(tmp_path, monkeypatch):
    (tmp_path / 'train_32x32.mat').write_bytes(b'')
    monkeypatch.setattr(sys.modules['mmssl.datasets.svhn'], 'is_importable', lambda name: False)
    with pytest.raises(ImportError, match='read with scipy, which is not installed: run `pip install scipy`'):
        SVHN(str(tmp_path))


@pytest.fixture
def folders(tmp_path):
    """Folders c, a, b with 1, 2, 3 images, the last of them one level deeper."""
    for count, name in enumerate('cab', 1):
        (tmp_path / 'train' / name / 'deep').mkdir(parents=True)
        for number in range(count):
            place = 'deep/' if number == 2 else ''
            cv2.imwrite(str(tmp_path / 'train' / name / f'{place}{number}.png'), np.full((4, 4, 3), count, np.uint8))
    return tmp_path


def test_classes_by_list(folders):
    (folders / 'classes.txt').write_text('# two of three\nb second name\nc\n')
    data = ClassFolderDataset('classes.txt', data_root=str(folders), data_prefix='train')
    infos = [data.get_data_info(i) for i in range(len(data))]
    assert [info['gt_label'] for info in infos] == [0, 0, 0, 1]
    assert [info['img_path'].split('/')[-2] for info in infos] == ['b', 'b', 'deep', 'c']
    assert data.metainfo['classes'] == ('b', 'c')
    labeled = LabeledSubset(data, per_class=1, seed=0)
    assert [labeled.get_data_info(i)['gt_label'] for i in range(2)] == [0, 1]


@pytest.mark.parametrize('content, error, message', [
    ('b\nz\n', FileNotFoundError, "class 'z' of `class_list` has no folder"),
    ('b\nb\n', ValueError, 'names a class twice: b'),
    ('# nothing\n', ValueError, 'names no class'),
])
def test_wrong_class_lists(folders, content, error, message):
    (folders / 'classes.txt').write_text(content)
    with pytest.raises(error, match=message):
        ClassFolderDataset('classes.txt', data_root=str(folders), data_prefix='train')
    with pytest.raises(FileNotFoundError, match=r'`class_list`: there is no file .*absent.txt'):
        ClassFolderDataset('absent.txt', data_root=str(folders))
    (folders / 'train' / 'empty').mkdir()
    with pytest.raises(ValueError, match=r'empty.* holds no image'):
        ClassFolderDataset(['empty'], data_root=str(folders), data_prefix='train')


@pytest.mark.parametrize('name, variable', [('cifar10_images', 'CIFAR10_ROOT'), ('mnist', 'MNIST_ROOT')])
def test_real_data(repo_root, shared_data, monkeypatch, name, variable):
    """The configs on the real files: as many labels as they say, all images unlabeled, numbers of the whole set."""
    monkeypatch.setenv(variable, str(shared_data / name.removesuffix('_images')))
    cfg = Config.fromfile(repo_root / 'configs' / '_base_' / 'datasets' / f'{name}_semi.py')
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        data = DATASETS.build(cfg.train_dataloader.dataset)
    total = {'cifar10_images': 50_000, 'mnist': 60_000}[name]
    assert [len(source) for source in data.datasets] == [40, total]
    labeled = data.datasets[0]
    counts = np.bincount([labeled.get_data_info(i)['gt_label'] for i in range(40)])
    assert counts.tolist() == [4] * 10
    item = data[40 + 1234]
    assert item['inputs']['sup'] is None and item['data_samples']['unsup_weak'].sample_idx == 1234
    side = {'cifar10_images': 32, 'mnist': 28}[name]
    assert item['inputs']['unsup_strong'].shape == (3, side, side)
    assert data[3]['data_samples']['sup'].sample_idx == labeled.indices[3]
    assert data[40 + labeled.indices[3]]['data_samples']['unsup_weak'].gt_label == data[3]['data_samples'][
        'sup'].gt_label
