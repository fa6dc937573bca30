"""``mmssl.config_path`` finds configs and helps with wrong names."""

from pathlib import Path

import pytest

import mmssl
from mmssl.utils import paths


@pytest.fixture
def some_configs(tmp_path, monkeypatch):
    for name in ('_base_/methods/fpl.py', 'fpl/cps_camvid.py', 'fpl/cps-fpl_camvid.py', 'adr/resnet.py'):
        (tmp_path / 'configs' / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / 'configs' / name).write_text('')
    monkeypatch.setattr(paths, 'PACKAGE', tmp_path)
    return tmp_path / 'configs'


def test_with_and_without_suffix(some_configs):
    expected = str(some_configs / 'fpl/cps_camvid.py')
    assert mmssl.config_path('fpl/cps_camvid.py') == expected
    assert mmssl.config_path('fpl/cps_camvid') == expected


def test_every_config_of_the_project_is_found():
    root = paths.config_root()
    names = [path.relative_to(root).as_posix() for path in root.rglob('*.py')]
    assert names
    for name in names:
        assert Path(mmssl.config_path(name)).is_file()


def test_a_typing_error_lists_near_names(some_configs):
    with pytest.raises(FileNotFoundError, match=r"no config 'fpl/cps_camvit\.py': did you mean 'fpl/cps_camvid\.py'"):
        mmssl.config_path('fpl/cps_camvit.py')


def test_a_wrong_folder_lists_the_right_one(some_configs):
    with pytest.raises(FileNotFoundError, match=r'adr/resnet\.py'):
        mmssl.config_path('resnet.py')


def test_a_name_unlike_all_lists_the_folders(some_configs):
    with pytest.raises(FileNotFoundError, match=r"the folders are \['_base_/methods', 'adr', 'fpl'\]"):
        mmssl.config_path('zzz')


@pytest.mark.parametrize('name', ['../setup.py', '/etc/passwd', ''])
def test_nothing_outside_the_configs_is_found(name):
    with pytest.raises(FileNotFoundError, match='mmssl has no config'):
        mmssl.config_path(name)
