"""FER2013: the file of the competition, and lines that are not as it should be."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('mmpretrain')

from mmssl.datasets import FER2013Dataset
from mmssl.registry import DATASETS


def write(folder: Path, *lines: tuple, header: str = 'emotion,pixels,Usage') -> Path:
    text = [header] + [f'{emotion},{pixels},{usage}' for emotion, pixels, usage in lines]
    (folder / 'fer2013.csv').write_text('\n'.join(text) + '\n')
    return folder


def face(value: int) -> str:
    return ' '.join([str(value)] * 2303 + ['7'])


def test_reads_the_split(tmp_path: Path) -> None:
    write(tmp_path, (3, face(200), 'Training'), (6, face(9), 'PublicTest'), (0, face(1), 'Training'),
          (2, face(255), 'PrivateTest'), header='emotion, pixels, Usage')  # fmt: skip
    train = DATASETS.build(dict(type='mmssl.FER2013Dataset', data_root=str(tmp_path)))
    assert [train[index]['gt_label'] for index in range(len(train))] == [3, 0]
    image = train[0]['img']
    assert image.shape == (48, 48, 3) and image.dtype == np.uint8
    assert (image[:, :47] == 200).all() and image[47, 47].tolist() == [7, 7, 7]
    assert train.metainfo['classes'][3] == 'happiness' and len(train.metainfo['classes']) == 7
    assert FER2013Dataset(str(tmp_path), 'val')[0]['gt_label'] == 6
    assert FER2013Dataset(str(tmp_path), 'test')[0]['gt_label'] == 2


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r'no file .*fer2013\.csv.*`data_root`'):
        FER2013Dataset(str(tmp_path))
    with pytest.raises(ValueError, match=r"`split` must be one of \['train', 'val', 'test'\], got 'dev'"):
        FER2013Dataset(str(tmp_path), 'dev')
    for line, message in (((7, face(1), 'Training'), "line 2: an emotion of 0 to 6 .* got emotion '7'"),
                          ((1, '3 4 5', 'Training'), 'line 2: .* and 3 pixels'),
                          ((1, face(256), 'Training'), 'line 2: pixels go from 7 to 256, outside 0 to 255'),
                          ((1, face(1).replace('7', 'x'), 'Training'), 'line 2: pixels are no numbers'),
                          ((1, face(1), 'Test'), "no line whose Usage is 'Training'")):  # fmt: skip
        write(tmp_path, line)
        with pytest.raises(ValueError, match=message):
            FER2013Dataset(str(tmp_path))
    write(tmp_path, (1, face(1), 'Training'), header='a,b,c')
    with pytest.raises(ValueError, match=r"columns emotion, pixels and Usage; its first line is \['a', 'b', 'c'\]"):
        FER2013Dataset(str(tmp_path))
