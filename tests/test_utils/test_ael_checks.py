"""What the checks before training know about AEL: its hook, and that its CutMix pairs no images of the batch."""

from types import SimpleNamespace

import pytest

pytest.importorskip('mmseg')
from mmengine.config import Config

import mmssl.engine  # noqa: F401
from mmssl.utils.checks.hooks import check_required_hooks
from mmssl.utils.checks.report import Report
from mmssl.utils.checks.settings import check_batch


def config(mix, hooks=()):
    model = dict(type='mmssl.AELSegmentor', segmentor=dict(type='EncoderDecoder'), semi_train_cfg=dict(mix=mix))
    loader = dict(
        batch_size=2,
        sampler=dict(type='mmssl.MultiSourceSampler', source_ratio=[1, 1]),
        dataset=dict(type='mmssl.MultiSourceDataset', sources=dict(labeled={}, unlabeled={})))
    return Config(dict(default_scope='mmseg', model=model, train_dataloader=loader, custom_hooks=list(hooks)))


@pytest.mark.parametrize(('kind', 'refused'), [('mmssl.CutMix', True), ('mmssl.AdaptiveCutMix', False)])
def test_an_odd_number_of_unlabeled_images(kind, refused):
    report = Report()
    sources = [SimpleNamespace(name=name, is_labeled=name == 'labeled') for name in ('labeled', 'unlabeled')]
    assert check_batch(config(dict(type=kind)), sources, report) == [1, 1]
    assert [error.key for error in report.errors] == ['model.semi_train_cfg.mix'] * refused


@pytest.mark.parametrize(('donor', 'refused'), [('batch', True), ('dataset', False)])
def test_a_donor_of_the_same_batch_needs_a_second_image(donor, refused):
    report = Report()
    sources = [SimpleNamespace(name=name, is_labeled=name == 'labeled') for name in ('labeled', 'unlabeled')]
    check_batch(config(dict(type='mmssl.AdaptiveCutMix', donor=donor)), sources, report)
    assert [error.key for error in report.errors] == ['model.semi_train_cfg.mix.donor'] * refused


def test_both_hooks_are_needed():
    mix = dict(type='mmssl.AdaptiveCutMix')
    both = [dict(type='mmssl.MeanTeacherHook'), dict(type='mmssl.AELHook')]
    for hooks, missing in ((both, []), (both[:1], ['mmssl.AELHook']), (both[1:], ['mmssl.MeanTeacherHook'])):
        report = Report()
        check_required_hooks(config(mix, hooks), report)
        assert [error.key for error in report.errors] == ['custom_hooks'] * len(missing)
        assert all(f'must hold {name}' in str(error) for name, error in zip(missing, report.errors, strict=True))
