"""The commands that the README opens with, and what CI runs."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

REPO_ROOT = Path(__file__).resolve().parents[2]
needs_make = pytest.mark.skipif(shutil.which('make') is None, reason='make is not installed')


# `make test` hands its own variables down to the tests.
VARIABLES = {'MAKEFLAGS', 'MFLAGS', 'MAKEOVERRIDES', 'MAKELEVEL', 'STACK', 'VENV', 'TORCH', 'TORCHVISION', 'PYTHON',
             'MMCV_WHEEL', 'PIP_ARGS', 'DATA', 'DATA_ROOT', 'WORK_DIR', 'TEST_ARGS', 'CONFIG', 'RUN_DIR',
             'BENCH_ROOT', 'CAMVID_ROOT'}  # yapf: disable


def make(*arguments, folder, **environment) -> subprocess.CompletedProcess:
    clean = {name: value for name, value in os.environ.items() if name not in VARIABLES} | environment
    return subprocess.run(['make', *arguments], cwd=folder, env=clean, capture_output=True, text=True, timeout=60)


@pytest.fixture
def bare(tmp_path):
    """A checkout without an environment."""
    for name in ('Makefile', 'setup.py'):
        shutil.copy2(REPO_ROOT / name, tmp_path)
    return tmp_path


@needs_make
def test_help_lists_every_target():
    text = (REPO_ROOT / 'Makefile').read_text()
    targets = re.search(r'^\.PHONY: (.*)$', text, re.MULTILINE)[1].split()
    listed = {line.split()[0] for line in make('help', folder=REPO_ROOT).stdout.splitlines() if line and line[0] != ' '}
    assert {'demo', 'test', 'lint', 'docs', 'bench', 'help'} <= set(targets) <= listed


@needs_make
@pytest.mark.parametrize('stack, expected', [
    ('onedl', ['torch==2.14.1', 'torchvision==0.29.1', '.[onedl,test]', '.venv/bin/python']),
    ('openmmlab', ['torch==2.1.2', 'torchvision==0.16.2', '.[openmmlab,test]', '.venv-original/bin/python', 'a.whl']),
])
def test_every_target_sets_up_what_it_needs(bare, stack, expected):
    for target in ('demo', 'test', 'lint', 'docs', 'bench'):
        result = make('-n', target, f'STACK={stack}', 'MMCV_WHEEL=a.whl', folder=bare)
        assert result.returncode == 0, result.stderr
        for part in expected:
            assert part in result.stdout, target


@needs_make
def test_a_finished_set_up_is_not_repeated(bare):
    (bare / '.venv').mkdir()
    (bare / '.venv' / '.mmssl-onedl-2.14.1-0.29.1').touch()
    assert 'pip install' not in make('-n', 'test', folder=bare).stdout
    assert 'pip install' in make('-n', 'test', 'TORCH=2.13.0', folder=bare).stdout


@needs_make
def test_wrong_variables_are_refused(bare):
    assert "STACK is 'other'; allowed are onedl and openmmlab" in make('-n', 'test', 'STACK=other', folder=bare).stderr
    result = make('test', 'PYTHON=', folder=bare)
    assert result.returncode != 0 and 'mmssl needs Python >= 3.10' in result.stderr


@needs_make
def test_demo_options_reach_the_script(bare):
    output = make('-n', 'demo', 'DATA=camvid', 'DATA_ROOT=/some where', folder=bare).stdout
    assert "--data camvid --data-root '/some where'" in output


@pytest.fixture
def installed(bare):
    """A checkout whose environment is there, with a Python that writes down what it is asked to run."""
    python = bare / '.venv/bin/python'
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\nprintf "[%s]" "$@" >> calls\necho >> calls\n'
                      'case "$1" in *"$FAIL"*) test -z "$FAIL";; esac\n')
    python.chmod(0o755)
    (bare / '.venv/.mmssl-onedl-2.14.1-0.29.1').touch()
    return bare


@needs_make
def test_bench_hands_on_config_and_data_and_skips_what_has_none(installed):
    result = make('bench', folder=installed)
    assert result.returncode == 0, result.stderr
    assert 'skipped, with method_cost.py: they need images' in result.stdout
    calls = (installed / 'calls').read_text()
    config = re.search(r'\[benchmarks/cps_step\.py\]\[--config\]\[(.*?)\]', calls)[1]
    assert (REPO_ROOT / config).is_file()
    assert '[benchmarks/fpl_loss.py]' in calls and '[benchmarks/bench_table.py][--write]' in calls
    assert 'data_pipeline' not in calls

    data = installed / 'some where'
    (data / 'img_dir/train').mkdir(parents=True)
    for given in (dict(CAMVID_ROOT=str(data)), {}):
        (installed / 'calls').unlink()
        options = ['CONFIG=my.py', 'RUN_DIR=work_dirs/x', *([] if given else [f'DATA_ROOT={data}'])]
        assert make('bench', *options, folder=installed, **given).returncode == 0
        calls = (installed / 'calls').read_text()
        assert f'[benchmarks/data_pipeline.py][{data}][--work-dir][work_dirs/x]' in calls
        assert '[--config][my.py]' in calls


@needs_make
@pytest.mark.parametrize('name', ['fpl_loss', 'cps_step', 'data_pipeline', 'method_cost'])
def test_bench_fails_when_a_benchmark_fails(installed, name):
    (installed / 'data/img_dir/train').mkdir(parents=True)
    result = make('bench', 'DATA_ROOT=data', folder=installed, FAIL=name)
    assert result.returncode != 0
    assert name in (installed / 'calls').read_text().splitlines()[-1]  # and nothing was run after it


def test_ci_runs_the_test_command_of_the_readme():
    script = (REPO_ROOT / '.ci' / 'run').read_text()
    assert 'make test' in script and 'make test' in (REPO_ROOT / 'README.md').read_text()
    assert (REPO_ROOT / '.ci' / 'run').stat().st_mode & 0o111
