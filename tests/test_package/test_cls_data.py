"""The worked example of docs/cls_data.md: its commands, in order, on small drawn images."""

import os
import re
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

pytest.importorskip('mmpretrain')
REPO_ROOT = Path(__file__).resolve().parents[2]
TEXT = (REPO_ROOT / 'docs' / 'cls_data.md').read_text()
BLOCKS = re.findall(r'<!-- (.+?) -->\n```\w*\n(.*?)```', TEXT, re.DOTALL)


@pytest.fixture(scope='module')
def checkout(tmp_path_factory):
    """A folder that looks like a checkout, with the config of the page and images of two classes."""
    folder = tmp_path_factory.mktemp('checkout')
    for name in ('tools', 'configs', 'mmssl'):
        (folder / name).symlink_to(REPO_ROOT / name, target_is_directory=True)
    for marker, text in BLOCKS:
        if marker.startswith('file: '):
            (folder / marker.removeprefix('file: ')).write_text(text)
    random = np.random.default_rng(0)
    for place, count in (('train/cat', 3), ('train/dog', 4), ('unlabeled/deep', 8), ('val/cat', 2), ('val/dog', 2)):
        path = folder / 'data' / 'own' / place
        path.mkdir(parents=True)
        for number in range(count):
            image = random.integers(0, 256, (40, 48, 3), np.uint8)
            cv2.imwrite(str(path / f'{place.split("/")[0]}{number}.jpg'), image)
    return folder


def test_config_can_be_read(checkout):
    from mmengine.config import Config
    cfg = Config.fromfile(checkout / 'own_cls.py')
    assert cfg.model.classifier.head.num_classes == 2
    assert cfg.model.data_preprocessor.data_preprocessor.to_rgb


@pytest.mark.slow
def test_own_images_from_zero(checkout):
    environment = {**os.environ, 'PATH': f'{Path(sys.executable).parent}{os.pathsep}{os.environ["PATH"]}',
                   'PYTHONPATH': str(REPO_ROOT), 'OMP_NUM_THREADS': '1'}  # yapf: disable
    commands = [text for marker, text in BLOCKS if marker == 'test']
    assert len(commands) == 2
    output = ''
    for text in commands:
        done = subprocess.run(['bash', '-e', '-c', text], cwd=checkout, env=environment, capture_output=True, text=True,
                              timeout=900)
        assert done.returncode == 0, f'{text}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}'
        output += done.stdout
    assert 'labels of labeled: 7; cat 3, dog 4' in output and 'no errors' in output
    assert len(list((checkout / 'work_dirs' / 'pictures').glob('*.png'))) == 4
    assert 'accuracy/top1' in output
    lines = (checkout / 'data' / 'own' / 'splits' / 'labeled_2-per-class.txt').read_text().splitlines()
    assert len([line for line in lines if not line.startswith('#')]) == 4
