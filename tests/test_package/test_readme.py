"""The examples of the README: run in order, in a folder that looks like a checkout, on small drawn images."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPO_ROOT = Path(__file__).resolve().parents[2]
README = (REPO_ROOT / 'README.md').read_text()
BLOCK = re.compile(r'(?:<!-- (?P<marker>.+?) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)```', re.DOTALL)
BLOCKS = [match.groupdict() for match in BLOCK.finditer(README)]
DOCS = sorted((REPO_ROOT / 'docs').glob('*.md'))


def run(command, cwd) -> None:
    """Run a command in ``cwd`` with this Python first on the path."""
    environment = {**os.environ, 'PATH': f'{Path(sys.executable).parent}{os.pathsep}{os.environ["PATH"]}',
                   'PYTHONPATH': str(REPO_ROOT), 'OMP_NUM_THREADS': '1'}  # yapf: disable
    result = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, f'{command}\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}'


@pytest.fixture(scope='module')
def checkout(tmp_path_factory):
    """A folder with links to what the commands of the README name, and with the files that it says to save."""
    folder = tmp_path_factory.mktemp('checkout')
    for name in ('tools', 'configs', 'mmssl'):
        (folder / name).symlink_to(REPO_ROOT / name, target_is_directory=True)
    for block in BLOCKS:
        if (block['marker'] or '').startswith('file: '):
            (folder / block['marker'].removeprefix('file: ')).write_text(block['text'])
    return folder


def test_every_example_is_run_or_says_why_not():
    languages = {'bash', 'python'}
    unmarked = [block['text'] for block in BLOCKS if block['language'] in languages and not block['marker']]
    assert not unmarked
    markers = ('test', 'test-python', 'file: ', 'not run: ')
    assert all(block['marker'].startswith(markers) for block in BLOCKS if block['language'] in languages)


@pytest.mark.slow
def test_own_data_from_zero(checkout):
    commands = [block['text'] for block in BLOCKS if block['marker'] == 'test']
    assert len(commands) >= 5
    for text in commands:
        run(['bash', '-e', '-c', text], checkout)
    assert (checkout / 'work_dirs' / 'trial' / 'iter_4.pth').is_file()
    assert list((checkout / 'work_dirs' / 'student').glob('*.pth'))

    # Every key that a run logs is explained.
    logged = max((checkout / 'work_dirs' / 'trial').glob('*/vis_data/scalars.json'))
    keys = {key for line in logged.read_text().splitlines() for key in json.loads(line)} - {'iter', 'step', 'memory'}
    page = (REPO_ROOT / 'docs' / 'curves.md').read_text()
    assert not sorted(key for key in keys if f'`{key.replace("student2", "student1")}' not in page)


@pytest.mark.parametrize('name', [block['marker'].removeprefix('file: ') for block in BLOCKS
                                  if (block['marker'] or '').startswith('file: ')])  # yapf: disable
def test_example_configs_can_be_read(checkout, name, read_base_finds_us):
    if name == 'by_read_base.py' and not read_base_finds_us:
        pytest.skip('mmengine 0.10.7 does not find the configs of an editable install')
    from mmengine.config import Config
    cfg = Config.fromfile(checkout / name)
    assert cfg.get('model') or cfg.unsup_loss.type == 'mmssl.FPLLoss'


def test_python_examples(checkout):
    examples = [block['text'] for block in BLOCKS if block['marker'] == 'test-python']
    assert examples
    for text in examples:
        run([sys.executable, '-c', text], checkout)


def test_version_sets_are_those_of_the_extras():
    from mmssl.utils.stack import STACKS
    for distributions in STACKS.values():
        for name, version in distributions.values():
            assert f'`{name}=={version}`' in README
    makefile = (REPO_ROOT / 'Makefile').read_text()
    for version in re.findall(r'^TORCH \?= (\S+)', makefile, re.MULTILINE):
        assert f'| {version} |' in README


@pytest.mark.parametrize('page', [REPO_ROOT / 'README.md', REPO_ROOT / 'CONTRIBUTING.md', *DOCS], ids=lambda p: p.name)
def test_links_and_names_exist(page):
    from mmengine.registry import Registry

    import mmssl.registry
    text = page.read_text()
    for target in re.findall(r'\]\(([^)#]+)(?:#[^)]*)?\)', text):
        assert target.startswith('http') or (page.parent / target).exists(), target
    for path in re.findall(r'\b(?:tools|configs|tests|docs|benchmarks)/[\w/.-]+\.(?:py|sh|md|json)\b', text):
        assert (REPO_ROOT / path).is_file(), path
    registries = [value for value in vars(mmssl.registry).values() if isinstance(value, Registry)]
    for name in set(re.findall(r'`?mmssl\.([A-Z]\w+)', text)) - {'X'}:
        assert any(registry.scope == 'mmssl' and registry.get(name) for registry in registries), f'mmssl.{name}'
    for module, function in re.findall(r'`mmssl\.(functional\.\w+)\.(\w+)`', text):
        assert f'def {function}(' in (REPO_ROOT / 'mmssl' / f'{module.replace(".", "/")}.py').read_text(), function
