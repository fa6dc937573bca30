"""tools/datasets/unpack_face_bin.py: files of all pickle protocols, no code run, use by the data set, errors."""

import importlib.util
import pickle
from pathlib import Path

import cv2
import numpy as np
import pytest

from mmssl.utils.face_bin import read_face_bin


@pytest.fixture(scope='module')
def tool(repo_root: Path):
    spec = importlib.util.spec_from_file_location('unpack_face_bin', repo_root / 'tools/datasets/unpack_face_bin.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def encode(number: int, suffix: str = '.jpg') -> bytes:
    image = np.random.default_rng(number).integers(0, 256, (16, 12, 3), np.uint8)
    return cv2.imencode(suffix, image)[1].tobytes()


IMAGES, SAME = [encode(number) for number in range(6)], [True, False, True]


def python2_pickle(images: list[bytes], same: list[bool]) -> bytes:
    """What Python 2 writes: its strings are those of bytes (opcode T), no call of anything."""
    strings = b''.join(b'T' + len(image).to_bytes(4, 'little') + image for image in images)
    return b'\x80\x02](' + strings + b'e](' + b''.join(b'\x88' if truth else b'\x89' for truth in same) + b'e\x86.'


def write(path: Path, content, protocol: int = 4) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else pickle.dumps(content, protocol))
    return path


@pytest.mark.parametrize('protocol', range(6))
@pytest.mark.parametrize('kind', [bytes, bytearray])
def test_every_protocol(tmp_path, protocol, kind):
    path = write(tmp_path / 'lfw.bin', ([kind(image) for image in IMAGES], SAME), protocol)
    assert read_face_bin(path) == (IMAGES, SAME)


def test_python_2(tmp_path):
    assert read_face_bin(write(tmp_path / 'lfw.bin', python2_pickle(IMAGES, SAME))) == (IMAGES, SAME)


def test_images_and_pairs_are_read_by_the_data_set(tool, tmp_path, capsys):
    pytest.importorskip('mmpretrain')
    from mmssl.datasets import FacePairsDataset
    images = [*IMAGES[:5], encode(5, '.png')]
    lfw = write(tmp_path / 'lfw.bin', (images, SAME))
    arguments = [str(lfw), str(write(tmp_path / 'cfp_fp.bin', (IMAGES[:2], [False]))), '--out', str(tmp_path / 'out')]
    assert tool.main(arguments) == 0
    assert 'lfw: 3 pairs, 2 of them of one person' in capsys.readouterr().out
    assert [(tmp_path / 'out/lfw' / f'{number:05d}.jpg').read_bytes() for number in range(5)] == IMAGES[:5]
    dataset = FacePairsDataset(data_root=str(tmp_path / 'out/lfw'), ann_file='pairs.txt', name='lfw', pipeline=[])
    infos = [dataset.get_data_info(index) for index in range(len(dataset))]
    assert [info['same'] for info in infos[::2]] == SAME and [info['pair'] for info in infos] == [0, 0, 1, 1, 2, 2]
    assert Path(infos[5]['img_path']).name == '00005.png'
    # An interrupted run is continued; what differs is not overwritten.
    (tmp_path / 'out/lfw/pairs.txt').unlink()
    assert tool.main(arguments) == 0 and (tmp_path / 'out/lfw/pairs.txt').exists()
    write(lfw, (images[::-1], SAME))
    assert tool.main(arguments) == 2
    assert 'exists and differs' in capsys.readouterr().err
    assert (tmp_path / 'out/lfw/00000.jpg').read_bytes() == IMAGES[0]


class Malicious:
    """Writes a file when it is unpickled as usual."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path, )


@pytest.mark.parametrize('protocol', [0, 2, 4])
def test_nothing_in_a_file_is_run(tool, tmp_path, protocol, capsys):
    content = pickle.dumps((IMAGES, [Malicious(tmp_path / 'ran'), False, True]), protocol)
    path = write(tmp_path / 'lfw.bin', content)
    assert tool.main([str(path), '--out', str(tmp_path / 'out')]) == 2
    assert 'which could run code' in capsys.readouterr().err
    assert not (tmp_path / 'ran').exists() and not (tmp_path / 'out').exists()
    pickle.loads(content)  # it would have
    assert (tmp_path / 'ran').exists()


@pytest.mark.parametrize('name', ['eval', 'getattr', 'open', 'list', '__import__'])
def test_other_builtins_are_refused(tmp_path, name):
    path = write(tmp_path / 'lfw.bin', f'c__builtin__\n{name}\n.'.encode())
    with pytest.raises(ValueError, match=f'__builtin__.{name}'):
        read_face_bin(path)


@pytest.mark.parametrize(('content', 'message'), [
    (b'', 'is no pickle of images and truths'),
    (b'\xff\xd8\xff\xe0 a picture', 'is no pickle of images and truths'),
    (pickle.dumps((IMAGES, SAME))[:-40], 'is no pickle of images and truths'),
    (b'\x80\x02c__builtin__\nbytes\nK\x09\x85R.', 'bytes of something that is no text'),
    ({'images': IMAGES}, 'must hold two lists, images and truths; found dict'),
    ((IMAGES, SAME, SAME), 'must hold two lists'),
    ((IMAGES, 3), r"found tuple of \['list', 'int'\]"),
    ((IMAGES, [True]), '6 images and 1 truths'),
    (([], []), '0 images and 0 truths'),
    (([*IMAGES[:5], b'GIF89a'], SAME), "image 5 must be the bytes of a JPEG or PNG file, found b'GIF89a'"),
    (([*IMAGES[:5], 'text'], SAME), "image 5 must be the bytes of a JPEG or PNG file, found 'str'"),
    ((IMAGES, [True, 2, False]), 'truth 1 must be True or False, found 2'),
])  # fmt: skip
def test_files_of_another_kind(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        read_face_bin(write(tmp_path / 'lfw.bin', content))


def test_no_such_file(tool, tmp_path, capsys):
    assert tool.main([str(tmp_path / 'lfw.bin'), '--out', str(tmp_path)]) == 2
    assert 'there is no file' in capsys.readouterr().err
