"""The built package: real config files inside, and every documented way to inherit from them."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

BUILD = ['--no-deps', '--no-build-isolation', '--disable-pip-version-check', '-q']
SKIPPED = shutil.ignore_patterns('.git', '.venv*', 'build', 'dist', '*.egg-info', 'work_dirs', 'data', '.mim', '_build',
                                 '__pycache__', '.pytest_cache', '.ruff_cache')  # yapf: disable


def run(*command, cwd, **env) -> str:
    """Run a command without the checkout on its path, and return what it printed."""
    clean = {name: value for name, value in os.environ.items() if name != 'PYTHONPATH'}
    command = [str(part) for part in command]
    result = subprocess.run(command, cwd=cwd, env={**clean, **env}, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope='module')
def source(repo_root, tmp_path_factory) -> Path:
    """A copy of the checkout, so that building leaves nothing in it and finds nothing stale."""
    return Path(shutil.copytree(repo_root, tmp_path_factory.mktemp('source') / 'mmssl', symlinks=True, ignore=SKIPPED))


@pytest.fixture(scope='module')
def wheel(source, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp('wheel')
    run(sys.executable, '-m', 'pip', 'wheel', *BUILD, '-w', folder, source, cwd=folder)
    return next(folder.glob('mmssl-*.whl'))


@pytest.fixture(scope='module')
def target(wheel, tmp_path_factory) -> Path:
    """A folder that holds only the installed wheel."""
    folder = tmp_path_factory.mktemp('target')
    run(sys.executable, '-m', 'pip', 'install', *BUILD, '--target', folder, wheel, cwd=folder)
    return folder


def config_names(root) -> set[str]:
    return {path.relative_to(root / 'configs').as_posix() for path in (root / 'configs').rglob('*.py')}


def test_the_wheel_has_every_config_as_a_real_file(wheel, source):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        for name in config_names(source):
            text = (source / 'configs' / name).read_bytes()
            for folder in ('configs', '.mim/configs'):
                assert archive.read(f'mmssl/{folder}/{name}') == text
        assert {'mmssl/.mim/tools/train.py', 'mmssl/.mim/tools/dist_train.sh', 'mmssl/.mim/model-index.yml',
                'mmssl/py.typed'} <= names  # yapf: disable
        index = archive.read('mmssl/.mim/model-index.yml').decode()
        for path in (source / 'configs').rglob('metafile.yml'):
            assert f'- {path.relative_to(source).as_posix()}' in index
        assert not [name for name in names if '__pycache__' in name or not name.startswith(('mmssl/', 'mmssl-'))]


def test_the_wheel_requires_no_stack_but_offers_both(wheel):
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith('METADATA'))
        lines = archive.read(name).decode().splitlines()
    requires = [line for line in lines if line.startswith('Requires-Dist:')]
    assert not [line for line in requires if 'mm' in line.split(';')[0] and 'extra ==' not in line]
    for extra, pin in (('onedl', 'onedl-mmsegmentation==1.4.2'), ('openmmlab', 'mmsegmentation==1.2.2')):
        assert any(pin in line and f'extra == "{extra}"' in line.replace("'", '"') for line in requires)
    assert 'License-File: LICENSE' in lines


@pytest.mark.slow
def test_the_sdist_builds_the_same_wheel(source, wheel, tmp_path):
    run(sys.executable, 'setup.py', '-q', 'sdist', '-d', tmp_path / 'dist', cwd=source)
    archive = next((tmp_path / 'dist').glob('*.tar.gz'))
    with tarfile.open(archive) as tar:
        assert not [member.name for member in tar if member.issym() or member.islnk()]
        tar.extractall(tmp_path / 'unpacked', **({'filter': 'data'} if sys.version_info >= (3, 12) else {}))
    unpacked = next((tmp_path / 'unpacked').iterdir())
    run(sys.executable, '-m', 'pip', 'wheel', *BUILD, '-w', tmp_path / 'again', unpacked, cwd=tmp_path)
    with zipfile.ZipFile(wheel) as first, zipfile.ZipFile(next((tmp_path / 'again').glob('*.whl'))) as second:
        assert set(first.namelist()) == set(second.namelist())


def test_an_editable_install_has_configs_and_mim_too(source, tmp_path):
    build = f'from setuptools import build_meta; build_meta.build_editable({str(tmp_path)!r})'
    run(sys.executable, '-c', build, cwd=source)
    target = tmp_path / 'target'
    run(sys.executable, '-m', 'pip', 'install', *BUILD, '--target', target, next(tmp_path.glob('*.whl')), cwd=tmp_path)
    # `-S` and this order of the path leave out what the environment of the tests may have installed: mmssl itself,
    # editable, as `make install` does it.
    site_packages = sysconfig.get_path('purelib')
    code = (f'import site, sys; site.addsitedir({str(target)!r}); sys.path.append({site_packages!r})\n'
            'import mmssl, pathlib; package = pathlib.Path(mmssl.__file__).parent; print(package)\n'
            'assert (package / ".mim" / "tools" / "train.py").is_file()\n'
            'assert (package / ".mim" / "model-index.yml").is_file()\n'
            'assert list((package / ".mim" / "configs").rglob("*.py"))\n'
            'assert list((package / "configs" / "_base_").rglob("*.py"))')
    assert Path(run(sys.executable, '-S', '-c', code, cwd=tmp_path).split()[-1]) == source / 'mmssl'


def leaf_and_experiment(root) -> tuple[str, str]:
    """One method leaf and one experiment, as paths below ``configs/``."""
    leaves = sorted(name for name in config_names(root) if name.startswith('_base_/methods/'))
    experiments = sorted(name for name in config_names(root) if name.startswith('fpl/'))
    return leaves[0], experiments[0]


@pytest.mark.parametrize('way', ['path', 'config_path', 'read_base'])
def test_inherit_from_the_installed_wheel(way, target, source, tmp_path):
    leaf, experiment = leaf_and_experiment(source)
    module = leaf.removesuffix('.py').replace('/', '.')
    first_line = {
        'path': f'_base_ = {str(target / "mmssl" / "configs" / experiment)!r}',
        'config_path': f"_base_ = __import__('mmssl').config_path({experiment!r})",
        'read_base': 'from mmengine.config import read_base\nwith read_base():\n'
                     f'    from mmssl.configs.{module} import *',
    }[way]
    (tmp_path / 'own.py').write_text(f'{first_line}\nown_key = 1\n')
    code = ('import mmssl; from mmengine.config import Config\n'
            f'assert mmssl.__file__.startswith({str(target)!r}), mmssl.__file__\n'
            "cfg = Config.fromfile('own.py'); assert cfg.own_key == 1\n"
            "cfg.dump('dumped.py'); again = Config.fromfile('dumped.py')\n"
            'assert again.to_dict() == cfg.to_dict()\n'
            "print(len(cfg.to_dict()), 'model' in cfg)")
    keys, has_model = run(sys.executable, '-W', 'ignore', '-c', code, cwd=tmp_path, PYTHONPATH=str(target)).split()[-2:]
    assert int(keys) > 1
    assert has_model == str(way != 'read_base')


def test_every_method_leaf_is_plain(repo_root):
    from mmengine.config import Config
    leaves = [name for name in config_names(repo_root) if name.startswith('_base_/methods/')]
    for name in leaves:
        text = (repo_root / 'configs' / name).read_text()
        assert not re.search(r'^\s*(_base_ =|import |from )', text, re.MULTILINE), f'{name} is not a plain-dict leaf'
        own = Config.fromfile(repo_root / 'configs' / name)
        taken = {'default_scope', 'env_cfg', 'vis_backends', 'visualizer', 'log_processor', 'optim_wrapper',
                 'log_level', 'default_hooks', 'model', 'train_cfg', 'load_from', 'resume'}  # yapf: disable
        assert not taken & set(own), f'{name} defines keys that stock runtimes define as well'
