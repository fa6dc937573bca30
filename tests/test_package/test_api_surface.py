"""Public names and config keys change only together with tests/api_surface.json."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest


@pytest.fixture(scope='module')
def tool(repo_root):
    spec = importlib.util.spec_from_file_location('api_surface', repo_root / 'tools' / 'dev' / 'api_surface.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_names_and_keys_are_the_stored_ones(tool):
    changes = tool.differences(json.loads(tool.STORED.read_text()), tool.surface())
    assert not changes, ('public names or config keys changed:\n' + '\n'.join(changes) +
                         '\nif that is meant: `python tools/dev/api_surface.py --write`, and a line in CHANGELOG.md')


def test_differences_are_found(tool):
    old = {'MODELS': {'A': {'x': '1'}, 'B': {}}}
    new = {'MODELS': {'A': {'x': '2', 'y': '0'}, 'C': {}}}
    assert tool.differences(old, new) == [
        'MODELS: B was removed', 'MODELS: C is new', 'MODELS: A(x) was 1, is 2', 'MODELS: A(y) was absent, is 0'
    ]
    assert tool.differences(old, old) == []


def test_no_name_of_ours_shadows_one_with_another_meaning(tool):
    # mmseg and mmpretrain own these names, and a scope prefix is easily forgotten in a config.
    taken = {'EMAHead', 'EMAHook', 'RandomGrayscale', 'CrossEntropyLoss', 'DiceLoss', 'FocalLoss', 'OptimWrapper'}
    for group, names in tool.surface().items():
        assert not taken & set(names), group


def test_spelling_of_names_is_american(tool):
    for group, names in tool.surface().items():
        for name, keys in names.items():
            for word in [name, *keys]:
                assert 'labelled' not in word.lower() and 'colour' not in word.lower(), f'{group}: {name}({word})'


def test_functions_of_the_maths_are_listed(tool):
    names = tool.surface()
    assert 'fuzzy_positive_assignment' in names['mmssl.functional.fpl']
    assert list(names['mmssl.functional.fpl_fused']) == ['fpl_loss']
    assert 'cutmix_masks' in names['mmssl.functional.cutmix']
    assert names['mmssl.functional.fpl_diagnostics']['fpl_diagnostics']['target_logits'] == '<required>'


def test_runs_outside_the_checkout_without_being_installed(repo_root, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != 'PYTHONPATH'}
    result = subprocess.run([sys.executable, str(repo_root / 'tools' / 'dev' / 'api_surface.py')], cwd=tmp_path,
                            env=environment, capture_output=True, text=True, timeout=120)  # yapf: disable
    assert 'Traceback' not in result.stderr and result.stdout
