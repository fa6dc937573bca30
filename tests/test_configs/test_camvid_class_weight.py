"""The class weights of the CamVid configs are those of its labeled images."""

import re

import numpy as np
from mmengine.config import Config
from PIL import Image

from mmssl.utils.checks.report import LabelHistogram


def test_class_weight_of_the_config_is_that_of_the_labeled_images(repo_root, shared_data):
    cfg = Config.fromfile(repo_root / 'configs/_base_/datasets/camvid.py')
    names = (repo_root / 'configs/_base_/splits/camvid/labeled_1-8.txt').read_text().splitlines()
    folder = shared_data / 'camvid/ann_dir/train'
    counts = np.zeros(256, dtype=np.int64)
    for name in names:
        if name and not name.startswith('#'):
            counts += np.bincount(np.asarray(Image.open(folder / f'{name}.png')).ravel(), minlength=256)
    counts = counts[:11]
    share = counts / counts.sum()
    expected = share**-0.5 / (share * share**-0.5).sum()
    np.testing.assert_allclose(cfg.class_weight, expected, atol=0.0051)
    histogram = LabelHistogram('labeled', [str(c) for c in range(11)], pixels=counts.tolist(), images=[1] * 11)
    assert histogram.class_weight() == cfg.class_weight
    assert re.search(r'class_weight of CrossEntropyLoss: \[0\.89, 0\.7', '\n'.join(histogram.lines()))


def test_an_absent_class_has_no_weight():
    histogram = LabelHistogram('labeled', ['a', 'b'], pixels=[3, 0], images=[1, 0])
    assert 'class_weight' not in '\n'.join(histogram.lines())
