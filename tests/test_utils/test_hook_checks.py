"""The check of required hooks and of the branches that options ask for."""

import pytest

pytest.importorskip('mmseg')
from mmengine.config import Config
from mmengine.registry import HOOKS

import mmssl.engine  # noqa: F401
from mmssl.engine.hooks import MeanTeacherHook
from mmssl.utils.checks.hooks import check_required_hooks
from mmssl.utils.checks.report import Report
from mmssl.utils.checks.settings import check_branches


def findings(check, **cfg):
    report = Report()
    model = dict(type='mmssl.MeanTeacherSegmentor', segmentor=dict(type='EncoderDecoder'), **cfg.pop('model', {}))
    check(Config(dict(default_scope='mmseg', model=model, **cfg)), report)
    return [str(error) for error in report.errors]


@pytest.mark.parametrize('hooks', [None, [], [dict(type='mmssl.FPLDiagnosticsHook')]])
def test_missing_hook_is_an_error(hooks):
    errors = findings(check_required_hooks, custom_hooks=hooks)
    assert len(errors) == 1
    assert errors[0].startswith('custom_hooks: must hold mmssl.MeanTeacherHook')
    assert 'replaces the inherited one' in errors[0]


def test_what_is_no_list_is_reported_elsewhere():
    for hooks in (dict(type='mmssl.MeanTeacherHook'), 'mmssl.MeanTeacherHook'):
        assert not findings(check_required_hooks, custom_hooks=hooks)


def test_hook_or_subclass_is_found():
    assert not findings(check_required_hooks, custom_hooks=[dict(type='mmssl.MeanTeacherHook')])
    assert not findings(check_required_hooks, custom_hooks=[dict(type=MeanTeacherHook)])

    class MyTeacherHook(MeanTeacherHook):
        pass

    HOOKS.register_module(module=MyTeacherHook, force=True)
    assert not findings(check_required_hooks, custom_hooks=[dict(type='MyTeacherHook')])


def test_other_models_need_no_hook():
    report = Report()
    for kind in ('EncoderDecoder', 'mmssl.CrossPseudoSupervision', 'Nonexistent'):
        check_required_hooks(Config(dict(default_scope='mmseg', model=dict(type=kind))), report)
    assert not report.errors


def test_branches_of_the_options_are_required():
    pack = [dict(type='PackSegInputs')]
    branches = ['sup', 'unsup_weak', 'unsup_strong']
    made = dict(type='mmssl.MultiBranch', branches=branches, sup=pack, unsup_weak=pack, unsup_strong=pack)
    loader = dict(dataset=dict(type='mmssl.SplitSegDataset', pipeline=[made]))
    assert not findings(check_branches, train_dataloader=loader)
    two = dict(semi_train_cfg=dict(strong_branches=['unsup_strong', 'unsup_strong2']))
    errors = findings(check_branches, train_dataloader=loader, model=two)
    assert len(errors) == 1 and "no pipeline makes the branch 'unsup_strong2'" in errors[0]
    made.pop('unsup_strong')
    weak = dict(semi_train_cfg=dict(strong_branches=['unsup_weak']))
    assert not findings(check_branches, train_dataloader=loader, model=weak)
    assert len(findings(check_branches, train_dataloader=loader)) == 1
