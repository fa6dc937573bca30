"""mmssl.PartialLabelDataset and mmssl.CandidateLabels: what the model gets, and what they refuse."""

from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from mmengine.dataset import BaseDataset, ConcatDataset, RepeatDataset
from mmengine.registry import DATASETS as MMENGINE_DATASETS
from mmengine.registry import TRANSFORMS
from mmengine.structures import BaseDataElement

from mmssl.datasets import PartialLabelDataset, Subset, full_length
from mmssl.utils.label_file import labels_hash, render_header

TRUE = [0, 1, 2, 0, 1, 2]
SETS = ['0 1', '1', '0 1 2', '0 2', '1 2', '2']


@MMENGINE_DATASETS.register_module(force=True)
class PlainClasses(BaseDataset):
    """Six samples of three classes, or what it is told."""

    METAINFO: ClassVar = dict(classes=['a', 'b', 'c'])

    def __init__(self, labels=TRUE, **kwargs):
        self.given = labels
        super().__init__(**kwargs)

    def load_data_list(self):
        return [dict(img_path=f'{i}.jpg', gt_label=label) for i, label in enumerate(self.given)]


def pack(info):
    assert 'gt_label' not in info
    return dict(inputs=info['candidates'],
                data_samples=dict(weak=BaseDataElement(metainfo=dict(sample_idx=info['sample_idx'])),
                                  strong=BaseDataElement()))


def write(folder: Path, sets=SETS, **header) -> str:
    entries = dict(num_samples=len(sets), num_classes=3, source_sha256=labels_hash(TRUE), **header)
    path = folder / 'sets.txt'
    path.write_text(render_header('make_candidates', entries) + ''.join(f'{line}\n' for line in sets))
    return str(path)


def build(path: str, labels=TRUE, **options) -> PartialLabelDataset:
    return PartialLabelDataset(PlainClasses(labels, pipeline=[pack], lazy_init=True), path, **options)


def test_samples_have_candidates_and_no_label(tmp_path: Path) -> None:
    dataset = build(write(tmp_path))
    assert len(dataset) == 6 and dataset.metainfo['classes'] == ['a', 'b', 'c'] == list(dataset.CLASSES)
    assert dataset.mean_size == pytest.approx(11 / 6) and dataset.ambiguity == 0.5
    for index, line in enumerate(SETS):
        item = dataset[index]
        labels = [int(word) for word in line.split()]
        assert item['inputs'].tolist() == labels
        for sample in item['data_samples'].values():
            assert sample.candidates.dtype == torch.bool
            assert sample.candidates.nonzero().flatten().tolist() == labels
            assert sample.metainfo['true_label'] == TRUE[index] and 'gt_label' not in sample
        assert item['data_samples']['weak'].metainfo['sample_idx'] == index
    item = dataset[0]['data_samples']
    item['weak'].candidates[:] = False
    assert dataset[0]['data_samples']['weak'].candidates.any(), 'samples must not share memory with the data set'


def test_wrappers_around_and_inside(tmp_path: Path) -> None:
    node = dict(type='mmssl.PartialLabelDataset', candidate_file=write(tmp_path),
                dataset=dict(type='PlainClasses', pipeline=[pack]))
    joined = ConcatDataset([dict(node), dict(node)])
    assert len(joined) == 12
    assert RepeatDataset(dict(node), times=2)[7]['data_samples']['strong'].metainfo['true_label'] == 1
    path = tmp_path / 'part.txt'
    path.write_text('0 1\n0 2\n')
    part = Subset(PlainClasses(pipeline=[pack], lazy_init=True), lambda whole: [0, 3])
    sample = PartialLabelDataset(part, str(path))[1]['data_samples']['weak']
    assert sample.metainfo['sample_idx'] == 3 and sample.candidates.tolist() == [True, False, True]
    with pytest.raises(TypeError, match='must be a data set that holds samples itself'):
        PartialLabelDataset(joined, str(path))


def test_negative_indices_and_ends(tmp_path: Path) -> None:
    dataset = build(write(tmp_path))
    assert dataset[-1]['data_samples']['weak'].metainfo['true_label'] == 2
    with pytest.raises(IndexError):
        dataset[6]


@pytest.mark.parametrize(('sets', 'message'), [
    (SETS[:5], 'has 5 candidate sets, the data set has 6 samples'),
    (['0 1', '1', '0 1 2', '0 2', '1 2', '-'], 'the set of sample 5 is empty'),
    (['0 1', '1', '0 1 3', '0 2', '1 2', '2'], r'sample 2 has the candidates \[0, 1, 3\]; allowed are 0 to 2'),
    (['0 1', '1', '0 -1', '0 2', '1 2', '2'], r'sample 2 has the candidates \[0, -1\]'),
    (['0 0', '1', '2', '0 2', '1 2', '2'], r'twice in the set \[0, 0\] of sample 0'),
    (['1', '1', '2', '0 2', '2', '2'], r'2 sets lack the true label, first that of sample 0: \[1\] without 0'),
    (['0 x', '1', '2', '0 2', '2', '2'], "line 5: '0 x' is no set of labels"),
    ([], 'has no candidate set'),
])  # yapf: disable
def test_files_that_are_refused(tmp_path: Path, sets: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        build(write(tmp_path, sets))
    assert 'candidate_file' in str(caught.value) and 'sets.txt' in str(caught.value)


def test_sets_without_the_truth_on_purpose(tmp_path: Path) -> None:
    path = write(tmp_path, ['1', '1', '2', '0 2', '2', '2'])
    assert build(path, noisy=True)[0]['data_samples']['weak'].candidates.tolist() == [False, True, False]
    unknown = build(path, has_truth=False)
    assert unknown.true_labels is None and unknown.ambiguity is None
    assert 'true_label' not in unknown[0]['data_samples']['weak'].metainfo


def test_files_of_another_data_set(tmp_path: Path) -> None:
    path = write(tmp_path)
    with pytest.raises(ValueError, match='was made from other labels'):
        build(path, labels=[0, 1, 2, 0, 2, 1])
    text = Path(path).read_text()
    Path(path).write_text(text.replace('num_classes: 3', 'num_classes: 4'))
    with pytest.raises(ValueError, match='is for 4 classes, the data set has 3'):
        build(path)
    Path(path).write_text(''.join(text.splitlines(keepends=True)[:-1]))
    with pytest.raises(ValueError, match='its header says 6: is it cut off'):
        build(path)
    with pytest.raises(FileNotFoundError, match=r"`candidate_file`: there is no file 'none\.txt'"):
        build('none.txt')


def test_candidates_of_own_annotations() -> None:
    transform = TRANSFORMS.build(dict(type='mmssl.CandidateLabels', num_classes=4, key='labels'))
    found = transform(dict(img_path='a.jpg', labels=[3, 1], gt_label=1))
    assert found['candidates'].tolist() == [False, True, False, True] and 'gt_label' not in found
    for labels in ([], [4], [-1], None, 3):
        with pytest.raises(ValueError, match=r'a\.jpg has the candidates'):
            transform(dict(img_path='a.jpg', labels=labels))
    with pytest.raises(KeyError, match='has no `labels`'):
        transform(dict(img_path='a.jpg'))
    with pytest.raises(ValueError, match='`num_classes` must be an integer >= 2'):
        TRANSFORMS.build(dict(type='mmssl.CandidateLabels', num_classes=1))


def test_the_mask_passes_the_packing_of_mmpretrain() -> None:
    pytest.importorskip('mmpretrain')
    from mmpretrain.datasets.transforms import PackInputs
    results = TRANSFORMS.build(dict(type='mmssl.CandidateLabels', num_classes=3))(
        dict(img=np.zeros((4, 4, 3), np.uint8), candidates=[0, 2]))
    sample = PackInputs(algorithm_keys=['candidates'])(results)['data_samples']
    assert torch.as_tensor(sample.candidates).tolist() == [True, False, True]


def test_what_check_data_says(tmp_path: Path) -> None:
    from mmengine.config import Config

    from mmssl.utils.checks.label_noise import check_label_noise
    from mmssl.utils.checks.report import Report
    node = dict(type='mmssl.PartialLabelDataset', candidate_file=write(tmp_path), dataset=dict(type='PlainClasses'))
    report = Report()
    check_label_noise(Config(dict(train_dataloader=dict(dataset=node))), report)
    text = '\n'.join(report.facts)
    assert '6 candidate sets of 1 to 3 labels, 1.833 on average; 33.33% have one' in text
    assert 'ambiguity degree 0.500' in text and not report.errors
    report = Report()
    check_label_noise(Config(dict(train_dataloader=dict(dataset=dict(node, candidate_file='none.txt')))), report)
    (error,) = report.errors
    assert error.key == 'train_dataloader.dataset' and "there is no file 'none.txt'" in error.message


def many(folder: Path, count: int = 60) -> tuple[str, list[int], list[str]]:
    labels = [index % 3 for index in range(count)]
    sets = [f'{label}' if index % 2 else f'{label} {(label + 1) % 3}' for index, label in enumerate(labels)]
    path = folder / 'sets_seed4.txt'
    header = render_header('make_candidates', dict(num_samples=count, num_classes=3, source_sha256=labels_hash(labels)))
    path.write_text(header + ''.join(f'{line}\n' for line in sets))
    return str(folder / 'sets_seed{seed}.txt'), labels, sets


def test_parts_together_are_the_data_set(tmp_path: Path) -> None:
    path, labels, sets = many(tmp_path)
    parts = {part: build(path, labels, held_out=0.1, part=part, seed=4) for part in ('train', 'held_out')}
    assert len(parts['held_out']) == 6 and len(parts['train']) == 54
    assert sorted(parts['train'].indices + parts['held_out'].indices) == list(range(60))
    for dataset in parts.values():
        assert full_length(dataset) == 60 and len(dataset.candidates) == len(dataset.true_labels) == len(dataset)
        for place, index in enumerate(dataset.indices):
            sample = dataset[place]['data_samples']['weak']
            assert sample.metainfo == dict(sample_idx=index, true_label=labels[index])
            assert ' '.join(map(str, sample.candidates.nonzero().flatten().tolist())) == ' '.join(
                sorted(sets[index].split()))
    again = build(path, labels, held_out=0.1, part='held_out', seed=4)
    assert again.indices == parts['held_out'].indices
    (tmp_path / 'sets_seed5.txt').write_text((tmp_path / 'sets_seed4.txt').read_text())
    assert build(path, labels, held_out=0.1, part='held_out', seed=5).indices != again.indices


@pytest.mark.parametrize('serialize', [True, False])
def test_parts_of_a_part(tmp_path: Path, serialize: bool) -> None:
    path, labels, _ = many(tmp_path, 30)
    inner = PlainClasses([0] * 10 + labels, pipeline=[pack], serialize_data=serialize, lazy_init=True)
    part = Subset(inner, lambda whole: range(10, 40))
    held_out = PartialLabelDataset(part, path, held_out=0.2, part='held_out', seed=4)
    assert len(held_out) == 6 and full_length(held_out) == 40
    for place, index in enumerate(held_out.indices):
        sample = held_out[place]['data_samples']['weak']
        assert sample.metainfo == dict(sample_idx=10 + index, true_label=labels[index])


def test_what_is_held_out_does_not_depend_on_labels(tmp_path: Path) -> None:
    path, labels, _ = many(tmp_path)
    dataset = PartialLabelDataset(PlainClasses(labels, pipeline=[pack], lazy_init=True), path, has_truth=False,
                                  held_out=0.1, part='held_out', seed=4)
    assert dataset.indices == build(path, labels, held_out=0.1, part='held_out', seed=4).indices


@pytest.mark.parametrize(('options', 'message'), [
    (dict(held_out=1.0), r'`held_out` must be in \[0, 1\)'),
    (dict(part='validation'), r"`part` must be one of \['train', 'held_out'\]"),
    (dict(part='held_out'), "part='held_out' needs `held_out`"),
    (dict(seed=-1), '`seed` must be an integer >= 0'),
    (dict(held_out=0.01, part='held_out', seed=4), "leaves no sample in part='held_out'"),
    (dict(seed=3), r'there is no file .*sets_seed3\.txt'),
])
def test_wrong_parts(tmp_path: Path, options: dict, message: str) -> None:
    path, labels, _ = many(tmp_path, 6)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        build(path, labels, **options)
