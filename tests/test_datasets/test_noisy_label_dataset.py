"""mmssl.NoisyLabelDataset: what losses and analysis see, wrappers around and inside, and files it refuses."""

from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from mmengine.config import Config
from mmengine.dataset import BaseDataset, ConcatDataset, RepeatDataset
from mmengine.registry import DATASETS as MMENGINE_DATASETS
from mmengine.registry import DefaultScope
from mmengine.structures import BaseDataElement

from mmssl.datasets import NoisyLabelDataset, Subset
from mmssl.utils.checks.label_noise import check_imbalance, check_label_noise, noise_facts
from mmssl.utils.checks.report import Report
from mmssl.utils.checks.sources import Leaf, Source
from mmssl.utils.label_file import labels_hash

CLASSES = ['airplane', 'automobile', 'bird', 'cat']
TRUE = [i % 4 for i in range(40)]


@MMENGINE_DATASETS.register_module(force=True)
class PlainLabels(BaseDataset):
    """Forty samples of four classes, or what it is told."""

    METAINFO: ClassVar = dict(classes=CLASSES)

    def __init__(self, labels=TRUE, **kwargs):
        self.given = labels
        super().__init__(**kwargs)

    def load_data_list(self):
        return [dict(img_path=f'{i}.jpg', gt_label=label) for i, label in enumerate(self.given)]


def pack(info):
    return dict(inputs=info['sample_idx'], data_samples=BaseDataElement(gt_label=info['gt_label']))


def branches(info):
    return dict(inputs=dict(sup=1, other=2), data_samples=dict(sup=BaseDataElement(), other=BaseDataElement()))


def build(pipeline=pack, labels=TRUE, **options):
    options = options or dict(noise=dict(kind='symmetric', rate=0.4))
    return NoisyLabelDataset(PlainLabels(labels, pipeline=[pipeline], lazy_init=True), **options)


def test_losses_see_the_noisy_label_and_analysis_the_true_one():
    dataset = build()
    assert len(dataset) == 40 and dataset.metainfo['classes'] == CLASSES == dataset.CLASSES
    assert dataset.noise_rate == 0.4 and dataset.transitions.diagonal().tolist() == [6, 6, 6, 6]
    for index in range(40):
        sample = dataset[index]['data_samples']
        assert sample.gt_label == dataset.labels[index] == dataset.get_cat_ids(index)[0]
        assert sample.metainfo['true_label'] == TRUE[index] == dataset.true_labels[index]
        assert 'true_label' not in sample._data_fields  # no data field
    assert dataset.get_gt_labels().tolist() == dataset.labels.tolist() != TRUE
    assert dataset[-1]['inputs'] == 39
    with pytest.raises(IndexError):
        dataset[40]


def test_every_branch_has_the_true_label():
    samples = build(branches)[5]['data_samples']
    assert {name: sample.true_label for name, sample in samples.items()} == dict(sup=1, other=1)


def test_same_labels_from_rule_and_everywhere():
    first, second = build(), build()
    assert (first.labels == second.labels).all()
    # Changing these labels changes everybody's experiments.
    assert labels_hash(first.labels).startswith('bcf6eef894cc7285')
    other = build(noise=dict(kind='symmetric', rate=0.4, seed=0))
    assert (other.labels != first.labels).any()


def test_asymmetric_by_name_by_number_and_next():
    by_name = build(noise=dict(kind='asymmetric', rate=0.5, confusions=dict(bird='airplane', cat='bird')))
    by_number = build(noise=dict(kind='asymmetric', rate='1/2', confusions={2: 0, 3: 2}))
    assert (by_name.labels == by_number.labels).all()
    assert by_name.transitions.tolist() == [[10, 0, 0, 0], [0, 10, 0, 0], [5, 0, 5, 0], [0, 0, 5, 5]]
    after = build(noise=dict(kind='asymmetric', rate=1, confusions='next'))
    assert after.labels.tolist() == [(label + 1) % 4 for label in TRUE]


def test_from_a_config_and_inside_of_wrappers():
    node = dict(type='mmssl.NoisyLabelDataset', dataset=dict(type='PlainLabels', pipeline=[pack]),
                noise=dict(kind='symmetric', rate=0.4))  # fmt: skip
    labels = build().labels.tolist()
    with DefaultScope.overwrite_default_scope('mmengine'):
        repeated = RepeatDataset(dict(node), times=2)
        joined = ConcatDataset([dict(node), dict(node)])
    for dataset in (repeated, joined):
        assert [dataset[i]['data_samples'].gt_label for i in range(80)] == labels * 2
    with pytest.raises(TypeError, match=r'RepeatDataset; put mmssl\.NoisyLabelDataset inside of wrappers'):
        NoisyLabelDataset(repeated, noise=dict(kind='symmetric', rate=0.4))


def write(path, labels=TRUE, **header):
    path.write_text(''.join(f'# {key}: {value}\n' for key, value in header.items())
                    + ''.join(f'{label}\n' for label in labels))
    return path


def test_file(tmp_path):
    noisy = [3 - label for label in TRUE]
    path = write(tmp_path / 'a.txt', noisy, num_samples=40, num_classes=4, source_sha256=labels_hash(TRUE))
    assert build(noise_file=path).labels.tolist() == noisy
    # A list of somebody else's: no header, names in front of the labels.
    (tmp_path / 'b.txt').write_text(''.join(f'img/{i}.jpg {label}\r\n' for i, label in enumerate(noisy)))
    assert build(noise_file=str(tmp_path / 'b.txt')).labels.tolist() == noisy


@pytest.mark.parametrize('labels, header, words', [
    (TRUE[:-1], {}, 'has 39 labels, the data set has 40 samples'),
    (TRUE[:-1], dict(num_samples=40), 'has 39 labels, but its header says 40: is it cut off'),
    ([*TRUE[:-1], 4], {}, r'sample 39 has the label 4; allowed are 0 to 3 \(4 classes\)'),
    ([-1, *TRUE[1:]], {}, 'sample 0 has the label -1'),
    (TRUE, dict(num_classes=10), 'is for 10 classes, the data set has 4'),
    (TRUE, dict(source_sha256=labels_hash(TRUE[::-1])), 'it is the file of another data set, or of this one in'),
    ([*TRUE[:-1], 'cat'], {}, "line 40: 'cat' is no label"),
    ([], {}, 'has no label'),
])  # fmt: skip
def test_files_of_another_data_set_are_refused(tmp_path, labels, header, words):
    path = write(tmp_path / 'noise.txt', labels, **header)
    with pytest.raises(ValueError, match=words) as info:
        build(noise_file=path)
    assert 'noise.txt' in str(info.value) and 'noise_file' in str(info.value)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r'mmssl.NoisyLabelDataset: `noise_file`: there is no file .*none'):
        build(noise_file=tmp_path / 'none.txt')


@pytest.mark.parametrize('options, error, words', [
    (dict(noise_file='a', noise=dict(kind='symmetric', rate=0)), ValueError, 'give `noise_file`'),
    (dict(noise=None), ValueError, 'give `noise_file`'),
    (dict(noise=dict(rate=0.2)), KeyError, "lacks 'kind'"),
    (dict(noise=dict(kind='symmetric', rate=0.2, ratio=1)), KeyError, r"has \['ratio'\]"),
    (dict(noise=dict(kind='symetric', rate=0.2)), ValueError, 'kind must be one of'),
    (dict(noise=dict(kind='symmetric', rate=20)), ValueError, r'rate must be a number in \[0, 1\], got 20'),
    (dict(noise=dict(kind='symmetric', rate='nan')), ValueError, 'rate must be'),
    (dict(noise=dict(kind='symmetric', rate=0.2, seed=-1)), ValueError, 'seed must be'),
    (dict(noise=dict(kind='symmetric', rate=0.2, confusions='next')), ValueError, "goes with kind='asymmetric'"),
    (dict(noise=dict(kind='asymmetric', rate=0.2)), ValueError, "goes with kind='asymmetric'"),
    (dict(noise=dict(kind='asymmetric', rate=0.2, confusions='cifar10')), ValueError, "'truck' is no class"),
    (dict(noise=dict(kind='asymmetric', rate=0.2, confusions={0: 9})), ValueError, '9 is no class; allowed are 0 to 3'),
    (dict(noise=dict(kind='asymmetric', rate=0.2, confusions={1: 'automobile'})), ValueError, 'taken for itself'),
])  # fmt: skip
def test_wrong_options(options, error, words):
    with pytest.raises(error, match=words):
        build(**options)


@pytest.mark.parametrize('labels, words', [
    ([0, 1, 5], 'go from 0 to 5; with 4 classes, 0 to 3'),
    ([0, [1, 2]], r'sample 1 of PlainLabels must have one label .* got \[1, 2\]'),
    ([0, None], 'got None'),
    ([0, 0.5], r'got 0\.5'),
])  # fmt: skip
def test_data_sets_without_one_label_each(labels, words):
    with pytest.raises(ValueError, match=words):
        build(labels=labels)


def test_report():
    node = dict(type='mmssl.NoisyLabelDataset', dataset=dict(type='PlainLabels', pipeline=[dict(type='None')]),
                noise=dict(kind='asymmetric', rate=0.5, confusions=dict(cat='bird')))  # fmt: skip
    cfg = Config(dict(train_dataloader=dict(dataset=dict(type='RepeatDataset', times=2, dataset=node)),
                      val_dataloader=dict(dataset=dict(node, noise_file='none.txt', noise=None))))  # fmt: skip
    report = Report()
    check_label_noise(cfg, report)
    text = report.to_text()
    for words in (
        '5 of 40 labels are wrong (12.50%)', 'cat: 5 of 10 wrong, most often bird (5)', 'airplane: 0 of 10 wrong\n',
        'imbalance ratio of the true labels 1.00', 'imbalance ratio of the noisy labels 3.00: 15 to 5',
        'val_dataloader.dataset: the labels that the model is evaluated by are made wrong', 'there is no file',
    ):  # fmt: skip
        assert words in text, text
    assert [finding.key for finding in report.errors] == ['val_dataloader.dataset']
    part = Subset(PlainLabels(), lambda whole: [0, 1, 2, 3, 4, 5, 8])
    leaf = Leaf('train_dataloader.dataset', {}, part, '', [])
    check_imbalance([Source('train', 'train_dataloader.dataset', [leaf])], report)
    assert report.facts[-1] == 'train_dataloader.dataset: imbalance ratio 3.00: 3 to 1 samples a class'
    many = SimpleNamespace(transitions=np.diag([5] * 30), metainfo={})
    assert 'wrong in a class: 0.00% to 0.00%' in noise_facts(many)[1]
