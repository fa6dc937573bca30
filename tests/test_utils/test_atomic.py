"""Files that are written whole or not at all."""

import os
import socket
import subprocess

import pytest

from mmssl.utils import atomic
from mmssl.utils.atomic import AtomicLocalBackend, remove_leftovers, write_atomically


def test_a_file_and_its_folder(tmp_path):
    path = tmp_path / 'new' / 'a'
    write_atomically(path, b'1')
    write_atomically(str(path), b'22')
    assert path.read_bytes() == b'22'
    AtomicLocalBackend().put(b'3', str(path))
    AtomicLocalBackend().put_text('\u00e9', str(tmp_path / 'b'), encoding='latin1')
    assert path.read_bytes() == b'3' and (tmp_path / 'b').read_bytes() == b'\xe9'
    assert sorted(os.listdir(tmp_path)) == ['b', 'new'] and os.listdir(path.parent) == ['a']


def test_a_link_stays_one(tmp_path):
    (tmp_path / 'target').write_bytes(b'old')
    (tmp_path / 'link').symlink_to(tmp_path / 'target')
    write_atomically(tmp_path / 'link', b'new')
    assert (tmp_path / 'link').is_symlink() and (tmp_path / 'target').read_bytes() == b'new'


@pytest.mark.parametrize('step', ['fsync', 'replace'])
def test_an_error_leaves_the_old_file_alone(tmp_path, monkeypatch, step):
    path = tmp_path / 'a'
    write_atomically(path, b'old')

    def full(*_):
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(atomic.os, step, full)
    with pytest.raises(OSError, match='No space left'):
        write_atomically(path, b'new')
    assert os.listdir(tmp_path) == ['a'] and path.read_bytes() == b'old'


def test_leftovers(tmp_path):
    """Those of dead processes here and of old ones elsewhere; not those of a living one, and no file of others."""
    finished = subprocess.Popen(['true'])
    finished.wait()
    here = socket.gethostname()
    dead = f'.iter_1.pth.{finished.pid}@{here}.mmssl-tmp'
    old, young = (f'.iter_1.pth.{pid}@elsewhere.example.mmssl-tmp' for pid in (1, 2))
    kept = [young, f'.iter_2.pth.{os.getpid()}@{here}.mmssl-tmp', '.iter_1.pth.swp', 'iter_1.pth', '.x.mmssl-tmp',
            '.iter_1.pth.tmp']  # yapf: disable
    for name in (dead, old, *kept):
        (tmp_path / name).write_bytes(b'')
    os.utime(tmp_path / old, (0, 0))
    assert sorted(remove_leftovers(tmp_path)) == sorted([dead, old])
    assert sorted(os.listdir(tmp_path)) == sorted(kept)
