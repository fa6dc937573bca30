"""Checks of classification configs, on class folders and a folder of unlabeled images."""

import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from mmengine.config import Config

pytest.importorskip('mmpretrain')

from mmengine.registry import init_default_scope

from mmssl.models.losses import ADRLoss
from mmssl.registry import MODELS
from mmssl.utils.checks import full_check, quick_check
from mmssl.utils.checks.hooks import check_required_hooks
from mmssl.utils.checks.report import Report
from mmssl.utils.checks.settings import DEFAULT_TOPK, check_branches

CONFIG = """
default_scope = 'mmpretrain'
root = {root!r}
load, pack = dict(type='LoadImageFromFile'), dict(type='PackInputs')
branches = ['sup', 'unsup_weak', 'unsup_strong']
weak = [dict(type='mmssl.RandomPadCrop', crop_size=8, padding=1), pack]
model = dict(
    type='mmssl.PseudoLabelClassifier',
    data_preprocessor=dict(
        type='mmssl.MultiBranchDataPreprocessor',
        data_preprocessor=dict(type='ClsDataPreprocessor', mean=[127.] * 3, std=[60.] * 3, to_rgb=True)),
    classifier=dict(
        type='ImageClassifier',
        backbone=dict(type='mmssl.WideResNet', depth=10, widen_factor=1, base_channels=4),
        neck=dict(type='GlobalAveragePooling'),
        head=dict(type='LinearClsHead', num_classes=3, in_channels=16, loss=dict(type='CrossEntropyLoss'))))
train_dataloader = dict(
    batch_size=4, num_workers=0,
    sampler=dict(type='mmssl.MultiSourceSampler', source_ratio=[1, 1]),
    dataset=dict(type='mmssl.MultiSourceDataset', sources=dict(
        labeled=dict(type='mmssl.LabeledSubset', per_class=2, dataset=dict(
            type='CustomDataset', data_root=root, data_prefix='train',
            pipeline=[load, dict(type='mmssl.MultiBranch', branches=branches, sup=weak)])),
        unlabeled=dict(type='mmssl.UnlabeledImageDataset', data_root=root, img_path='unlabeled', pipeline=[
            load, dict(type='mmssl.MultiBranch', branches=branches, unsup_weak=weak, unsup_strong=weak)]))))
val_dataloader = dict(
    batch_size=4, num_workers=0, sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(type='CustomDataset', data_root=root, data_prefix='val', pipeline=[load, pack]))
test_dataloader = val_dataloader
val_evaluator = test_evaluator = dict(type='Accuracy')
val_cfg, test_cfg = dict(), dict()
train_cfg = dict(type='IterBasedTrainLoop', max_iters=4, val_interval=4)
optim_wrapper = dict(optimizer=dict(type='SGD', lr=0.1, momentum=0.9))
default_hooks = dict(checkpoint=dict(type='CheckpointHook', by_epoch=False, interval=4))
custom_hooks = [dict(type='mmssl.IterationSeedHook')]
"""
SOURCES = 'train_dataloader.dataset.sources'


@pytest.fixture(scope='module')
def root(tmp_path_factory):
    """Three classes with 4 training and 2 validation images, and 6 unlabeled ones."""
    folder = tmp_path_factory.mktemp('folders')
    places = [(f'{part}/{name}', count) for part, count in (('train', 4), ('val', 2)) for name in ('cat', 'dog', 'owl')]
    for place, count in [*places, ('unlabeled', 6)]:
        (folder / place).mkdir(parents=True)
        for number in range(count):
            image = np.random.default_rng(number + len(place)).integers(0, 256, (8, 8, 3), np.uint8)
            cv2.imwrite(str(folder / place / f'{place.split("/")[0]}{number}.png'), image)
    return folder


@pytest.fixture
def cfg(root):
    return Config.fromstring(CONFIG.format(root=str(root)), '.py')


def test_good_config(cfg):
    report = full_check(cfg)
    assert report.errors == []
    text = report.to_text()
    assert 'labels of labeled: 6, 2 of each of 3 classes' in text and 'labels of val: 6, 2 of each of 3' in text
    assert [(s.name, s.images, s.per_gpu) for s in report.sources] == [('labeled', 6, 2), ('unlabeled', 6, 2)]
    assert report.memory.get('activations', 0) > 0, report.memory['how']
    assert 'total' in report.memory
    assert quick_check(cfg).errors == []


@pytest.mark.parametrize('changes, key, words', [
    ({'model.classifier.head.num_classes': 4}, 'model.classifier.head.num_classes', ['is 4', 'has 3 classes']),
    ({f'{SOURCES}.labeled.per_class': 5}, f'{SOURCES}.labeled', ['`per_class`=5', "'cat'", 'only 4 samples']),
    ({f'{SOURCES}.labeled.ann_file': 'no.txt', f'{SOURCES}.labeled.per_class': None}, f'{SOURCES}.labeled.ann_file',
     ['no such file', 'no.txt']),
    ({f'{SOURCES}.labeled.dataset.data_root': '/nowhere'}, f'{SOURCES}.labeled.dataset.data_root', ['/nowhere']),
    ({f'{SOURCES}.labeled.dataset.data_prefix': 'tarin'}, f'{SOURCES}.labeled', ['tarin']),
    ({f'{SOURCES}.labeled.dataset.type': 'CustmDataset'}, f'{SOURCES}.labeled.dataset.type', ['CustomDataset']),
    ({'train_dataloader.batch_size': 5}, 'train_dataloader.batch_size', ['5', 'multiple of 2', '4 and 6']),
    ({f'{SOURCES}.unlabeled.img_path': 'train'}, SOURCES, ['6 images', '`labeled`', 'include_labeled=False']),
    ({'val_dataloader.dataset.data_prefix': 'train', 'test_dataloader.dataset.data_prefix': 'train'},
     'val_dataloader.dataset', ['6 images are also trained on']),
    ({f'{SOURCES}.labeled.dataset.with_label': False, f'{SOURCES}.labeled.dataset.classes': ['cat', 'dog', 'owl']},
     f'{SOURCES}.labeled', ['states no `gt_label`']),
])
def test_wrong_configs(cfg, changes, key, words):
    cfg.merge_from_dict({name: value for name, value in changes.items() if value is not None})
    for name, value in changes.items():
        if value is None:
            parent, _, last = name.rpartition('.')
            node = cfg
            for part in parent.split('.'):
                node = node[part]
            node.pop(last)
    with pytest.raises((ValueError, FileNotFoundError)) as info:
        quick_check(cfg)
    assert f'{key}: ' in str(info.value)
    for word in words:
        assert word in str(info.value)


def test_labels_outside_the_classes(cfg, root):
    """In a list, which mmpretrain takes as it is; and classes without an image."""
    (root / 'list.txt').write_text('cat/train0.png 0\ndog/train1.png 3\n')
    whole = cfg.train_dataloader.dataset.sources.labeled.dataset
    whole.update(ann_file='list.txt', classes=['cat', 'dog', 'owl'])
    cfg.train_dataloader.dataset.sources.labeled = whole
    with pytest.raises(ValueError, match=r'1 of 2 samples have a label outside the 3 classes, 0 to 2, .*train1.png '
                       'with 3'):
        quick_check(cfg)
    (root / 'list.txt').write_text('cat/train0.png 0\ndog/train1.png 1\n')
    warnings = [str(warning) for warning in quick_check(cfg).warnings]
    assert any("1 of 3 classes have no image: ['owl']" in warning for warning in warnings)


def test_include_labeled(cfg):
    cfg.train_dataloader.dataset.sources.unlabeled.img_path = ['train', 'unlabeled']
    cfg.train_dataloader.dataset.include_labeled = True
    report = quick_check(cfg)
    assert [source.images for source in report.sources] == [6, 18]
    assert any('include_labeled=True' in fact for fact in report.facts)
    cfg.train_dataloader.dataset.include_labeled = False
    report = quick_check(cfg)
    assert [source.images for source in report.sources] == [6, 12]
    cfg.train_dataloader.dataset.sources.unlabeled.update(img_path='', ann_file='')
    with pytest.raises(ValueError, match='give `img_path`'):
        quick_check(cfg)


def test_files_of_mnist(cfg, shared_data):
    """A test set without `test_mode` would be the training images."""
    cfg.val_dataloader.dataset = cfg.test_dataloader.dataset = dict(
        type='MNIST', data_root=str(shared_data / 'mnist'), split='test', pipeline=[])
    message = r'val_dataloader.dataset.test_mode: is False, so the training images are read'
    with pytest.raises(ValueError, match=message):
        quick_check(cfg)


@pytest.mark.parametrize('options', [3, [1], dict(threshold=0.9), dict(threshold='mmssl.FlexMatchThreshold'),
                                     dict(threshold=[1, 2]), dict(threshold=None), dict(alignment='uniform')])
@pytest.mark.parametrize('kind', ['PseudoLabelClassifier', 'PartialLabelClassifier'])
def test_options_that_are_no_dicts_are_left_to_the_model(cfg, kind, options):
    """It names the key; the checks before it neither fail nor take it for a missing hook."""
    cfg.model.type = f'mmssl.{kind}'
    cfg.custom_hooks.append(dict(type='mmssl.MeanTeacherHook'))
    cfg.model.pop('semi_train_cfg', None)
    cfg.merge_from_dict(dict(model=dict(semi_train_cfg=options)))
    report = Report()
    check_branches(cfg, report)
    check_required_hooks(cfg, report)
    assert report.errors == []
    if kind == 'PseudoLabelClassifier':
        init_default_scope('mmpretrain')
        with pytest.raises(ValueError, match=r'model\.semi_train_cfg.* must be .*a dict'):
            MODELS.build(cfg.model)


def test_a_classifier_that_is_no_config_is_left_to_the_model(cfg):
    cfg.model.pop('classifier')
    report = Report()
    check_branches(cfg, report)
    assert report.errors == []


@pytest.mark.slow
def test_without_mmseg(cfg, root, repo_root: Path):
    """A user of classification need not install it."""
    file = root / 'config.py'
    file.write_text(CONFIG.format(root=str(root)))
    code = ("import sys; sys.modules['mmseg'] = None\n"
            'from mmengine.config import Config\nfrom mmssl.utils.checks import quick_check\n'
            f'print(quick_check(Config.fromfile({str(file)!r})).to_text())')
    done = subprocess.run([sys.executable, '-c', code], cwd=repo_root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert 'no errors' in done.stdout


def test_pictures_name_the_classes(cfg, root, repo_root: Path, tmp_path, monkeypatch):
    """browse_dataset shows every branch."""
    monkeypatch.syspath_prepend(str(repo_root / 'tools'))
    import browse_dataset
    file = root / 'browse.py'
    file.write_text(CONFIG.format(root=str(root)))
    printed = []
    monkeypatch.setattr('builtins.print', lambda *args, **_: printed.append(' '.join(map(str, args))))
    assert browse_dataset.main([str(file), '--out', str(tmp_path / 'out'), '-n', '1']) == 0
    text = '\n'.join(printed)
    assert 'sup 8x8: ' in text and any(name in text for name in ('cat', 'dog', 'owl'))
    assert 'unsup_weak 8x8' in text and 'unsup_strong 8x8' in text
    assert len(list((tmp_path / 'out').glob('*.png'))) == 2


def test_held_out_samples_do_not_count(cfg, tmp_path):
    (tmp_path / 'sets.txt').write_text('0 1 2\n' * 12)
    whole = cfg.train_dataloader.dataset.sources.labeled.dataset.to_dict()
    for part, images in (('train', 9), ('held_out', 3)):
        cfg.train_dataloader.dataset.sources.labeled = dict(
            type='mmssl.PartialLabelDataset', candidate_file=str(tmp_path / 'sets.txt'), held_out=0.25, part=part,
            dataset=whole)
        report = quick_check(cfg)
        assert [source.images for source in report.sources] == [images, 6]
        assert any(f': {images} candidate sets' in fact for fact in report.facts), report.facts


def losses(cfg, *losses):
    """The config with these losses in the place of cross entropy."""
    cfg.model.classifier.head.loss = dict(type='mmssl.CombinedLoss', losses=list(losses))
    return cfg


def test_tau_above_the_classes_is_named_before_training(cfg):
    key = 'model.classifier.head.loss.losses.1.topk'
    for topk in (3, None):
        assert not full_check(losses(cfg, dict(type='CrossEntropyLoss'), dict(type='mmssl.ADRLoss', topk=topk))).errors
    with pytest.raises(ValueError, match=rf'{key}: is 4, but model.classifier.head has 3 classes; allowed: 1 to 3'):
        quick_check(losses(cfg, dict(type='CrossEntropyLoss'), dict(type='mmssl.ADRLoss', topk=4)))
    assert ADRLoss().topk == DEFAULT_TOPK
    cfg.model.classifier.head.loss = dict(type='mmssl.ADRLoss', topk=7)
    with pytest.raises(ValueError, match=r'model\.classifier\.head\.loss\.topk: is 7'):
        quick_check(cfg)


def test_a_number_of_classes_of_the_wrong_kind_does_not_fail_in_the_check_of_tau(cfg):
    losses(cfg, dict(type='mmssl.ADRLoss')).model.classifier.head.num_classes = '3'
    with pytest.raises(ValueError, match=r'model\.classifier\.head\.num_classes: is 3, but'):
        quick_check(cfg)


def test_online_label_smoothing_without_its_hook_is_refused_before_training(cfg):
    ols, hook = dict(type='mmssl.OnlineLabelSmoothLoss', num_classes=3), dict(type='mmssl.OnlineLabelSmoothHook')
    with pytest.raises(ValueError, match=r'custom_hooks: must hold mmssl.OnlineLabelSmoothHook, without which '
                                         r'model.classifier.head.loss.losses.0.type'):
        quick_check(losses(cfg, ols))
    assert not full_check(losses(cfg, dict(ols, updates='manual'))).errors
    cfg.custom_hooks.append(hook)
    with pytest.raises(ValueError, match=r'custom_hooks.1.interval: is missing, and an iteration-based train_cfg'):
        quick_check(losses(cfg, ols))
    cfg.custom_hooks[1] = dict(hook, interval=2)
    assert not full_check(losses(cfg, ols)).errors
    with pytest.raises(ValueError, match=r'losses.0.num_classes: is 10, but model.classifier.head has 3 classes'):
        quick_check(losses(cfg, dict(ols, num_classes=10)))
