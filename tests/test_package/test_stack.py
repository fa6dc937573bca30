"""What importing mmssl says when the OpenMMLab packages are missing or don't fit each other."""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

from mmssl.utils import stack

REPO_ROOT = Path(__file__).resolve().parents[2]


def run_python(code: str) -> subprocess.CompletedProcess:
    """Run ``code`` in a fresh interpreter that finds the checkout."""
    return subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, cwd=REPO_ROOT, timeout=120)


def hide(*modules: str) -> str:
    """Code that makes ``modules`` look as if they weren't installed."""
    return ('import importlib.abc, importlib.util, sys\n'
            f'hidden = {modules!r}\n'
            'class Hide(importlib.abc.MetaPathFinder):\n'
            '    def find_spec(self, name, path=None, target=None):\n'
            '        if name in hidden: raise ModuleNotFoundError("No module named " + repr(name), name=name)\n'
            'sys.meta_path.insert(0, Hide())\n'
            'find_spec = importlib.util.find_spec\n'
            'importlib.util.find_spec = lambda name, *a: None if name in hidden else find_spec(name, *a)\n')


def test_import_without_a_stack_names_the_command():
    result = run_python(hide('mmengine', 'mmcv', 'mmseg', 'mmpretrain') + 'import mmssl')
    assert result.returncode == 1
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith('ImportError: mmssl needs the OpenMMLab packages')
    assert "pip install 'mmssl[onedl]'" in last and "pip install 'mmssl[openmmlab]'" in last


def test_import_is_light():
    result = run_python('import sys, mmssl\n'
                        "print(sorted({'torch', 'mmengine', 'mmcv', 'mmseg', 'mmpretrain', 'cv2'} & set(sys.modules)))")
    assert result.stdout.strip() == '[]', result.stderr


def test_everything_registered_imports_without_compiled_ops():
    # mmseg 1.2.2 imports mmcv.ops by itself, so on the original packages this is about the rest of mmssl.
    absent = ('mmcv._ext', 'mmseg') if 'openmmlab' in stack.installed('mmseg') else ('mmcv._ext', )
    code = hide(*absent) + ('import mmssl.registry as r\n'
                                'from mmengine.registry import Registry\n'
                                'n = 0\n'
                                'for value in list(vars(r).values()):\n'
                                '    if isinstance(value, Registry) and value.scope == "mmssl":\n'
                                '        value.import_from_location(); n += len(value.module_dict)\n'
                                'print(n)')
    result = run_python(code)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout.split()[-1]) > 0


def test_no_file_names_the_compiled_operators(repo_root):
    for folder in ('mmssl', 'configs', 'tools'):
        for path in (repo_root / folder).rglob('*.py'):
            assert 'mmcv.ops' not in path.read_text(), path


@pytest.mark.parametrize('hidden', ['mmseg', 'mmpretrain'])
def test_each_side_imports_without_the_other(hidden):
    parts = ('models', 'datasets', 'engine', 'evaluation', 'visualization')
    result = run_python(hide(hidden) + '\n'.join(f'import mmssl.{part}' for part in parts))
    assert result.returncode == 0, result.stderr


@pytest.fixture
def pretend(monkeypatch, tmp_path):
    """Function that makes ``stack`` see other distributions and other ``__init__.py`` files."""

    def pretend(versions: dict[str, str], sources: dict[str, str], pkg_resources: bool = True):

        def version(name):
            if name not in versions:
                raise importlib.metadata.PackageNotFoundError(name)
            return versions[name]

        paths = {}
        for module, source in sources.items():
            for name, text in {'__init__.py': source, 'utils/package_utils.py': 'import pkg_resources'}.items():
                path = tmp_path / module / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            paths[module] = tmp_path / module / '__init__.py'
        monkeypatch.setattr(stack, 'version', version)
        monkeypatch.setattr(stack, 'source_of', paths.get)
        monkeypatch.setattr(stack.importlib.util, 'find_spec', lambda name: object() if pkg_resources else None)

    return pretend


MMSEG = "MMCV_MIN = '2.0.0rc4'\nMMCV_MAX = '2.2.0'\nMMENGINE_MIN = '0.5.0'\nMMENGINE_MAX = '1.0.0'\n"
MMPRETRAIN = "mmcv_minimum_version = '2.0.0'\nmmcv_maximum_version = '2.4.0'\nmmcv_version = digit(mmcv.__version__)"
ORIGINAL = {'mmengine': '0.10.7', 'mmcv': '2.1.0', 'mmsegmentation': '1.2.2', 'mmpretrain': '1.2.0'}
ONEDL = {
    'onedl-mmengine': '0.10.12',
    'onedl-mmcv': '2.3.6',
    'onedl-mmsegmentation': '1.4.2',
    'onedl-mmpretrain': '1.3.6'
}
SOURCES = {'mmengine': '', 'mmseg': MMSEG, 'mmpretrain': MMPRETRAIN}


def test_declared_ranges_reads_both_spellings():
    assert stack.declared_ranges(MMSEG) == {
        'mmcv': {'min': '2.0.0rc4', 'max': '2.2.0'},
        'mmengine': {'min': '0.5.0', 'max': '1.0.0'}
    }
    assert stack.declared_ranges(MMPRETRAIN) == {'mmcv': {'min': '2.0.0', 'max': '2.4.0'}}


@pytest.mark.parametrize('versions, sources', [(ORIGINAL, SOURCES), (ONEDL, {**SOURCES, 'mmseg': ''}),
                                               ({'mmengine': '0.10.7'}, {'mmengine': ''})])
def test_matching_versions_pass(pretend, versions, sources, recwarn):
    pretend(versions, sources)
    stack.check_stack()
    assert not recwarn


@pytest.mark.parametrize('mmcv', ['2.2.0', '1.7.1'])
def test_mmcv_that_mmseg_refuses_names_the_right_version(pretend, mmcv):
    pretend({**ORIGINAL, 'mmcv': mmcv}, SOURCES)
    with pytest.raises(ImportError, match=rf'mmsegmentation 1\.2\.2 works .*{mmcv}.*`pip install mmcv==2\.1\.0`'):
        stack.check_stack()


def test_mmpretrain_of_the_maintained_stack_is_checked_as_well(pretend):
    pretend({**ONEDL, 'onedl-mmcv': '2.4.1'}, {**SOURCES, 'mmseg': ''})
    with pytest.raises(ImportError, match=r'onedl-mmpretrain 1\.3\.6 .* 2\.4\.1 .*`pip install onedl-mmcv==2\.3\.6`'):
        stack.check_stack()


def test_of_a_mixed_pair_the_odd_one_is_to_be_changed(pretend):
    mixed = {'onedl-mmengine': '0.10.12', 'onedl-mmcv': '2.3.6', 'mmsegmentation': '1.2.2'}
    pretend(mixed, {'mmengine': '', 'mmseg': MMSEG})
    with pytest.raises(ImportError, match=r'uninstall -y mmsegmentation`, then .* onedl-mmsegmentation==1\.4\.2'):
        stack.check_stack()
    pretend({'mmengine': '0.10.7', 'onedl-mmcv': '2.3.6', 'mmsegmentation': '1.2.2'}, {'mmengine': '', 'mmseg': MMSEG})
    with pytest.raises(ImportError, match=r'pip uninstall -y onedl-mmcv`, then `pip install mmcv==2\.1\.0'):
        stack.check_stack()


def test_both_distributions_of_one_module_warn(pretend):
    pretend({**ONEDL, 'mmcv': '2.1.0'}, {'mmengine': ''})
    with pytest.warns(UserWarning, match='onedl-mmcv and mmcv are both installed.*pip install onedl-mmcv==2.3.6'):
        stack.check_stack()


def test_missing_pkg_resources_is_said(pretend):
    pretend(ORIGINAL, {'mmengine': ''}, pkg_resources=False)
    with pytest.raises(ImportError, match=r"mmengine 0\.10\.7 needs pkg_resources.*pip install 'setuptools<81'"):
        stack.check_stack()


def test_version_sets_agree_with_setup_py(repo_root):
    source = (repo_root / 'setup.py').read_text()
    for distributions in stack.STACKS.values():
        for name, version in distributions.values():
            assert f"'{name}=={version}'" in source
