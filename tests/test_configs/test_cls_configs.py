"""Data configs of classification: their pipelines run, with the sizes, batches and sources of C.5 and C.6."""

import numpy as np
import pytest
from mmengine.config import Config
from mmengine.dataset import Compose
from mmengine.registry import DefaultScope

pytest.importorskip('mmpretrain')

# Side of the views, form of an image as the data set gives it, labeled and unlabeled images of a batch, kept images.
DATA = {
    'cifar10': (32, (32, 32, 3), (64, 448), True),
    'cifar10_images': (32, (32, 32, 3), (64, 448), True),
    'cifar100': (32, (32, 32, 3), (64, 448), True),
    'svhn': (32, (32, 32, 3), (64, 448), True),
    'stl10': (96, (96, 96, 3), (64, 448), True),
    'mnist': (28, (28, 28), (64, 448), True),
    'fashion_mnist': (28, (28, 28), (64, 448), True),
    'imagenet100': (224, (200, 300, 3), (16, 112), True),
    'class_folders': (224, (200, 300, 3), (8, 56), None),
}


@pytest.mark.parametrize('name', DATA)
def test_pipelines(repo_root, name):
    import mmpretrain.datasets  # noqa: F401
    side, shape, batch, kept = DATA[name]
    cfg = Config.fromfile(repo_root / 'configs' / '_base_' / 'datasets' / f'{name}_semi.py')
    loader, image = cfg.train_dataloader, np.random.randint(0, 256, shape, np.uint8)
    ratio = loader.sampler.source_ratio
    assert tuple(loader.batch_size // sum(ratio) * part for part in ratio) == batch
    assert loader.dataset.get('include_labeled') is kept
    labeled = loader.dataset.sources.labeled.get('dataset', loader.dataset.sources.labeled)
    found = {}
    for node in (labeled, loader.dataset.sources.unlabeled, cfg.val_dataloader.dataset):
        with DefaultScope.overwrite_default_scope('mmpretrain'):
            pipeline = Compose([step for step in node.pipeline if step['type'] != 'LoadImageFromFile'])
        inputs = pipeline({'img': image.copy(), 'sample_idx': 7, 'img_shape': shape[:2], 'ori_shape': shape[:2]})[
            'inputs']
        found.update({branch: view for branch, view in inputs.items() if view is not None}
                     if isinstance(inputs, dict) else {'val': inputs})
    assert set(found) == {'sup', 'unsup_weak', 'unsup_strong', 'val'}
    assert all(view.shape == (3, side, side) for view in found.values())
    assert cfg.val_dataloader.dataset.type == cfg.test_dataloader.dataset.type
    assert cfg.val_dataloader.dataset.data_root == labeled.data_root
