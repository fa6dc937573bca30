"""Labeled subsets: which samples, their numbers in the whole data set, and overlap of sources that share images."""

from types import SimpleNamespace

import numpy as np
import pytest
from mmengine.dataset import BaseDataset, ConcatDataset

from mmssl.datasets import LabeledSubset, MultiSourceDataset, Subset, full_length
from mmssl.datasets.labeled_subset import per_class_indices
from mmssl.registry import DATASETS


class Sample(SimpleNamespace):
    """What a packing transform makes: meta information that can be set."""

    def set_metainfo(self, metainfo):
        self.metainfo.update(metainfo)


def pack(results):
    """Pack into two branches, of which this source fills one."""
    if results.get('bad') and np.random.rand() < 2:
        return None
    sample = Sample(metainfo={'sample_idx': results['sample_idx']}, label=results.get('gt_label'))
    return {'inputs': {'sup': results.get('img'), 'other': None}, 'data_samples': {'sup': sample, 'other': None}}


class Toy(BaseDataset):
    """Images in memory with labels 0, 1, 2, 0, ... of three classes, or files."""

    METAINFO = {'classes': ('a', 'b', 'c')}  # noqa: RUF012

    def __init__(self, count=12, root='data', split='train', files=False, bad=(), labeled=True, **kwargs):
        self.count, self.split, self.files, self.bad, self.labeled = count, split, files, bad, labeled
        kwargs.setdefault('pipeline', [pack])
        super().__init__(data_prefix={'img_path' if files else 'root': root}, **kwargs)

    def load_data_list(self):
        infos = []
        for i in range(self.count):
            info = {'img_path': f'{self.data_prefix["img_path"]}/{"abc"[i % 3]}/{i}.png'} if self.files else {
                'img': np.full((2, 2), i, np.uint8)}
            info['bad'] = i in self.bad
            infos.append({**info, 'gt_label': i % 3} if self.labeled else info)
        return infos


@pytest.fixture(autouse=True)
def registered():
    DATASETS.register_module(name='Toy', module=Toy, force=True)
    yield
    DATASETS.module_dict.pop('Toy')


def toy(**kwargs):
    return dict(type='mmssl.Toy', **kwargs)


def numbers(dataset, branch='sup'):
    return [dataset[i]['data_samples'][branch].metainfo['sample_idx'] for i in range(len(dataset))]


def test_per_class_is_the_protocol_of_usb():
    """C.6, against a second implementation with the global generator, as the reference has it."""
    labels = np.random.RandomState(5).randint(0, 4, 80)
    for seed in (0, 1, 2):
        np.random.seed(seed)
        expected = []
        for label in range(4):
            index = np.where(labels == label)[0]
            np.random.shuffle(index)
            expected.extend(index[:3])
        assert per_class_indices(labels, 4, 3, seed) == expected
    assert per_class_indices(labels, 4, 3, 0) != per_class_indices(labels, 4, 3, 1)


def test_golden_choice():
    """The same samples with every version of NumPy."""
    assert per_class_indices(np.arange(100) % 10, 10, 2, 0) == [
        20, 80, 31, 51, 22, 32, 63, 13, 54, 24, 15, 85, 36, 26, 7, 97, 78, 88, 19, 29]


def test_samples_and_their_numbers():
    data = DATASETS.build(dict(type='mmssl.LabeledSubset', per_class=2, seed=1, dataset=toy()))
    chosen = sorted(per_class_indices(np.arange(12) % 3, 3, 2, 1))
    assert len(data) == 6 and data.indices == chosen and full_length(data) == 12
    assert numbers(data) == chosen
    assert [data.get_data_info(i)['sample_idx'] for i in range(6)] == chosen
    assert [int(data[i]['inputs']['sup'][0, 0]) for i in range(6)] == chosen
    assert sorted(data.get_data_info(i)['gt_label'] for i in range(6)) == [0, 0, 1, 1, 2, 2]
    assert data.metainfo['classes'] == ('a', 'b', 'c')
    # Only the part is kept in memory.
    assert len(data.whole) == 6


def test_skipped_samples_leave_a_part_that_is_held_out():
    labels = np.arange(60) % 3
    first, rest = per_class_indices(labels, 3, 12, 4), per_class_indices(labels, 3, 8, 4, skip=12)
    assert sorted(first + rest) == list(range(60))
    assert LabeledSubset(toy(), per_class=1, seed=3, skip=3).indices == sorted(
        set(range(12)) - set(LabeledSubset(toy(), per_class=3, seed=3).indices))


def test_a_rejected_sample_is_replaced_by_one_of_the_subset():
    """Another sample of the whole would be one whose label must not be used."""
    chosen = sorted(per_class_indices(np.arange(30) % 3, 3, 1, 0))
    data = LabeledSubset(toy(count=30, bad=chosen[:2]), per_class=1, seed=0)
    assert numbers(data) == [chosen[2]] * 3


def test_lists_name_files_or_numbers(tmp_path):
    names = tmp_path / 'names.txt'
    names.write_text('# header\na/0\nb/4.png\nc/11.png 2\na/6\t0\n')
    data = LabeledSubset(toy(files=True, root='some/where'), ann_file=names)
    assert data.indices == [0, 4, 6, 11] and numbers(data) == [0, 4, 6, 11]
    indices = tmp_path / 'indices.txt'
    indices.write_text('7\t1\n2\n')
    assert LabeledSubset(toy(), ann_file=indices).indices == [2, 7]


@pytest.mark.parametrize('text, message', [
    ('a/0\nz/1\n', r"line 2: 'z/1' is no sample of Toy, whose 12 samples are called a/0, b/1, c/2"),
    ('a/0.png 1\n', r"line 1: 'a/0.png' has label 1, but the data set says 0"),
    ('a/0\na/0.png\n', r"line 2: 'a/0.png' is listed twice"),
])
def test_wrong_lists(tmp_path, text, message):
    file = tmp_path / 'list.txt'
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        LabeledSubset(toy(files=True), ann_file=file)
    with pytest.raises(FileNotFoundError, match=r'mmssl.LabeledSubset: `ann_file`: there is no list'):
        LabeledSubset(toy(), ann_file=tmp_path / 'absent.txt')


@pytest.mark.parametrize('kwargs, message', [
    (dict(), 'give `ann_file` .* or `per_class`'),
    (dict(per_class=1, ann_file='x'), 'give `ann_file` .* or `per_class`'),
    (dict(per_class=0), '`per_class` must be an integer >= 1, got 0'),
    (dict(per_class=True), '`per_class` must be an integer >= 1, got True'),
    (dict(per_class=1, seed=-1), '`seed` must be an integer >= 0, got -1'),
    (dict(per_class=1, skip=-1), '`skip` must be an integer >= 0, got -1'),
    (dict(ann_file='x', skip=1), '`skip`=1 belongs to `per_class`'),
    (dict(per_class=2, skip=3), r"`per_class`=2 after `skip`=3, but class 0 \('a'\) has only 4 samples"),
    (dict(per_class=5), r"`per_class`=5, but class 0 \('a'\) has only 4 samples"),
])
def test_wrong_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        LabeledSubset(toy(), **kwargs)


def test_wrong_data_sets():
    with pytest.raises(ValueError, match='Toy states no `gt_label`'):
        LabeledSubset(toy(labeled=False), per_class=1)
    with pytest.raises(TypeError, match=r'must be a plain data set .* got ConcatDataset'):
        LabeledSubset(ConcatDataset([Toy(), Toy()]), per_class=1)
    with pytest.raises(ValueError, match='labels go from 0 to 2; with 2 classes, 0 to 1 are allowed'):
        LabeledSubset(toy(metainfo=dict(classes=('a', 'b'))), per_class=1)


def test_include_labeled():
    """D3: the labeled images are in the unlabeled ones, or not, as the key says; unsaid, it is an error."""
    def sources():
        return dict(labeled=dict(type='mmssl.LabeledSubset', per_class=1, dataset=toy()), unlabeled=toy())

    with pytest.raises(ValueError, match=r'`labeled` \(3 images\) and `unlabeled` \(12\) share 3 images, such as '
                       'memory://Toy/.*data/train#') as info:
        MultiSourceDataset(sources())
    assert 'include_labeled=False' in str(info.value)
    kept = MultiSourceDataset(sources(), include_labeled=True)
    assert len(kept) == 15
    apart = MultiSourceDataset(sources(), include_labeled=False)
    assert len(apart) == 12
    found = numbers(apart)
    assert found[:3] == apart.datasets[0].indices
    # What is left keeps its numbers, and the table of a method has room for all.
    assert found[3:] == [i for i in range(12) if i not in found[:3]]
    assert [full_length(source) for source in apart.datasets] == [12, 12]
    with pytest.raises(ValueError, match='include_labeled=True, but no source is called `labeled`'):
        MultiSourceDataset(dict(one=toy()), include_labeled=True)
    # It permits no other overlap.
    with pytest.raises(ValueError, match=r'`unlabeled` .* and `more` .* share 12 images'):
        MultiSourceDataset(dict(sources(), more=toy()), include_labeled=True)
    with pytest.raises(ValueError, match='no image is left without the labeled ones'):
        MultiSourceDataset(dict(labeled=toy(), unlabeled=toy()), include_labeled=False)


def test_images_in_memory_are_told_apart():
    """By root, part, class and number; not by content, since official sets hold equal images."""
    for other in (toy(split='test'), toy(root='elsewhere'), toy(indices=[])):
        if other.get('indices') is None:
            assert len(MultiSourceDataset(dict(labeled=toy(), unlabeled=other))) == 24
    halves = dict(labeled=toy(indices=[0, 1, 2]), unlabeled=toy(indices=[3, 4, 5]))
    assert len(MultiSourceDataset(halves)) == 6
    halves['unlabeled'] = toy(indices=[5, 2])
    with pytest.raises(ValueError, match=r'share 1 image, such as memory://.*#2\.'):
        MultiSourceDataset(halves)


def test_numbers_count_from_the_start_of_the_source():
    """A source of several data sets gives no two samples the same number (FlexMatch keys a table by it)."""
    parts = ConcatDataset([
        dict(type='mmssl.LabeledSubset', per_class=1, dataset=toy(count=6, root='p')),
        dict(type='RepeatDataset', times=2, dataset=toy(count=3, root='q')), toy(count=4, root='r')])
    data = MultiSourceDataset(dict(labeled=toy(root='s'), unlabeled=parts))
    found = numbers(data)
    first = parts.datasets[0].indices
    assert found[:12] == list(range(12))
    assert found[12:] == [*first, 6, 7, 8, 6, 7, 8, 9, 10, 11, 12]
    assert full_length(parts) == 13
    assert found[-1] == numbers(data)[-1]  # asked twice, not shifted twice


def test_a_part_of_a_built_data_set():
    data = Subset(Toy(), lambda whole: [1, 5], lazy_init=True)
    assert len(data) == 2 and numbers(data) == [1, 5] and data.get_cat_ids is not None
