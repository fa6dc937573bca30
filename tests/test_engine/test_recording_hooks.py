"""Hooks that look at what the unsupervised loss saw, through a real runner."""

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip('mmseg')
import cv2
import numpy as np
import torch
from mmengine.config import Config
from mmengine.registry import VISBACKENDS
from mmengine.runner import Runner
from mmengine.visualization import BaseVisBackend

from mmssl.engine.hooks import FPLDiagnosticsHook, PseudoLabelVisualizationHook
from mmssl.engine.hooks.pseudo_label_visualization_hook import denormalize

ROOT = Path(__file__).resolve().parents[2]
SIZE = (64, 64)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """CPS + CutMix + FPL on six generated images of four classes, with the truth of the unlabeled ones."""
    rng = np.random.default_rng(0)
    for split, count in (('labeled', 2), ('unlabeled', 4)):
        (tmp_path / 'img' / split).mkdir(parents=True)
        (tmp_path / 'ann' / split).mkdir(parents=True)
        for index in range(count):
            name = f'{split}{index}.png'
            labels = rng.integers(0, 4, (4, 4)).repeat(20, 0).repeat(20, 1).astype(np.uint8)
            image = np.stack([labels * 60] * 3, -1) + rng.integers(0, 50, (80, 80, 3))
            assert cv2.imwrite(str(tmp_path / 'img' / split / name), image.astype(np.uint8))
            assert cv2.imwrite(str(tmp_path / 'ann' / split / name), labels)
    cfg = Config.fromfile(str(ROOT / 'configs/fpl/camvid/fpl-cps-cutmix_resnet18w16_1xb12-2k_camvid-1over8.py'))
    meta = dict(classes=('a', 'b', 'c', 'd'), palette=[[0, 0, 0], [255, 0, 0], [0, 255, 0], [0, 0, 255]])
    geometry = [dict(type='RandomCrop', crop_size=SIZE), dict(type='RandomFlip', prob=0.5)]
    branches = ['sup', 'unsup_weak']
    load = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations')]
    cfg.train_dataloader.update(batch_size=6, num_workers=0, persistent_workers=False)
    cfg.train_dataloader.dataset.sources = dict(
        labeled=dict(
            type='mmssl.SplitSegDataset', data_root=str(tmp_path), metainfo=meta, img_suffix='.png',
            data_prefix=dict(img_path='img/labeled', seg_map_path='ann/labeled'),
            pipeline=[*load, *geometry,
                      dict(type='mmssl.MultiBranch', branches=branches, sup=[dict(type='PackSegInputs')])]),
        unlabeled=dict(
            type='mmssl.UnlabeledImageDataset', data_root=str(tmp_path), img_path='img/unlabeled',
            seg_map_path='ann/unlabeled',
            pipeline=[*load, *geometry,
                      dict(type='mmssl.MultiBranch', branches=branches,
                           unsup_weak=[dict(type='mmssl.PackSemiSegInputs')])]))  # fmt: skip
    for preprocessor in (
        cfg.model.data_preprocessor.data_preprocessor, cfg.model.segmentor.data_preprocessor, cfg.data_preprocessor
    ):  # fmt: skip
        preprocessor.size = SIZE
    cfg.model.segmentor.decode_head.num_classes = 4
    cfg.model.segmentor.decode_head.loss_decode = dict(type='CrossEntropyLoss')  # without CamVid's class weights
    cfg.model.semi_train_cfg.unsup_begin = 0
    for key in ('val_dataloader', 'val_evaluator', 'val_cfg', 'test_dataloader', 'test_evaluator', 'test_cfg'):
        cfg.pop(key)
    cfg.train_cfg = dict(type='IterBasedTrainLoop', max_iters=5)
    cfg.default_hooks.logger.interval = 1
    cfg.default_hooks.checkpoint = None
    cfg.work_dir = str(tmp_path / 'work')
    cfg.experiment_name = tmp_path.name
    return cfg


def train(cfg: Config) -> tuple[Runner, list[dict[str, Any]]]:
    # mmengine keeps visualizers by name for the whole process, log folder and all.
    cfg.visualizer.name = cfg.experiment_name
    runner = Runner.from_cfg(cfg)
    runner.train()
    log = next(Path(runner.log_dir).glob('vis_data/scalars.json')).read_text().splitlines()
    return runner, [json.loads(line) for line in log]


def test_diagnostics_reach_the_log(config: Config) -> None:
    config.custom_hooks = [dict(type='mmssl.FPLDiagnosticsHook', interval=2, keys=['*_acc', 'case?_ratio'])]
    runner, log = train(config)
    assert len(log) == 5
    assert 'unsup_pseudo_acc' not in log[0]
    for line in log[1:]:
        assert line['unsup_loss'] > 0
        assert 0 <= line['unsup_pseudo_acc'] <= line['unsup_positive_acc'] <= 1
        assert line['unsup_case1_ratio'] + line['unsup_case2_ratio'] + line['unsup_case3_ratio'] == pytest.approx(1)
        assert line['unsup_case1_ratio'] == pytest.approx(line['unsup_pseudo_acc'])
        assert 'unsup_case2_score_fpl' not in line
    # Measured in the 2nd and the 4th iteration; what lies between repeats the last value.
    accuracies = [line['unsup_pseudo_acc'] for line in log[1:]]
    assert accuracies[0] == accuracies[1] and accuracies[2] == accuracies[3] != accuracies[1]
    assert runner.model.record is None and not runner.model.recording


def test_pictures_are_written(config: Config) -> None:
    config.custom_hooks = [
        dict(type='mmssl.PseudoLabelVisualizationHook', interval=2, num_images=2),
        dict(type='mmssl.FPLDiagnosticsHook', interval=1),
    ]
    runner, log = train(config)
    pictures = sorted(Path(runner.log_dir).glob('vis_data/pseudo_labels/*.png'))
    assert [picture.name for picture in pictures] == ['iter_2.png', 'iter_4.png']
    image = cv2.imread(str(pictures[0]))
    # Seven columns and two rows, not an empty canvas.
    assert image.shape[1] > 1000 and image.std() > 20
    assert len({line['unsup_pseudo_acc'] for line in log}) > 1


@VISBACKENDS.register_module(force=True)
class FakeBackend(BaseVisBackend):
    """Stands in for TensorBoard or WandB."""

    images: ClassVar[list[tuple[str, np.ndarray, int]]] = []

    def _init_env(self) -> None:
        """Nothing."""

    @property
    def experiment(self) -> None:
        """Nothing."""

    def add_image(self, name: str, image: np.ndarray, step: int = 0, **kwargs: Any) -> None:
        """Keep it."""
        self.images.append((name, image, step))


def test_pictures_reach_other_backends(config: Config) -> None:
    FakeBackend.images.clear()
    config.custom_hooks = [dict(type='mmssl.PseudoLabelVisualizationHook', interval=2, num_images=2)]
    config.visualizer.vis_backends = [dict(type='LocalVisBackend'), dict(type='FakeBackend')]
    runner, _ = train(config)
    assert [(name, step) for name, _, step in FakeBackend.images] == [('pseudo_labels', 2), ('pseudo_labels', 4)]
    written = cv2.imread(str(Path(runner.log_dir) / 'vis_data' / 'pseudo_labels' / 'iter_4.png'))[..., ::-1]
    assert np.array_equal(FakeBackend.images[-1][1], written)


def test_truth_does_not_touch_training(config: Config) -> None:
    with_truth = train(config)[0].model.state_dict()
    hidden = config.copy()
    unlabeled = hidden.train_dataloader.dataset.sources.unlabeled
    unlabeled.pop('seg_map_path')
    unlabeled.pipeline.pop(1)
    hidden.custom_hooks = []
    hidden.experiment_name += 'hidden'
    without = train(hidden)[0].model.state_dict()
    assert all(torch.equal(without[name], value) for name, value in with_truth.items())


def test_missing_truth_is_said(config: Config) -> None:
    unlabeled = config.train_dataloader.dataset.sources.unlabeled
    unlabeled.pop('seg_map_path')
    unlabeled.pipeline.pop(1)
    config.custom_hooks = [dict(type='mmssl.FPLDiagnosticsHook')]
    with pytest.raises(ValueError, match=r'sources\.unlabeled\.seg_map_path'):
        train(config)
    # Before the first iteration: the hook would have measured only in the 50th of 5.
    assert not list(Path(config.work_dir).glob('*/vis_data/scalars.json'))


@pytest.mark.parametrize('keys', [None, 'case1_ratio', [1], ['case4_ratio']])
def test_wrong_keys(keys: Any) -> None:
    with pytest.raises(ValueError, match=r'mmssl\.FPLDiagnosticsHook\.keys'):
        FPLDiagnosticsHook(keys=keys)


def test_supervised_model_is_refused(config: Config) -> None:
    config.model = config.model.segmentor
    config.train_dataloader.dataset = config.train_dataloader.dataset.sources.labeled
    config.train_dataloader.dataset.pipeline[-1] = dict(type='PackSegInputs')
    config.train_dataloader.sampler = dict(type='InfiniteSampler')
    config.custom_hooks = [dict(type='mmssl.FPLDiagnosticsHook')]
    with pytest.raises(ValueError, match=r'needs a semi-supervised segmentor of mmssl.*got model\.type=EncoderDecoder'):
        train(config)


@pytest.mark.parametrize('interval', [0, -1, 1.5, True, '5'])
def test_wrong_interval(interval: Any) -> None:
    with pytest.raises(ValueError, match=r'mmssl\.FPLDiagnosticsHook\.interval must be an integer >= 1'):
        FPLDiagnosticsHook(interval=interval)
    with pytest.raises(ValueError, match=r'mmssl\.PseudoLabelVisualizationHook\.interval'):
        PseudoLabelVisualizationHook(interval=interval)


def test_images_come_back_from_the_preprocessor() -> None:
    from mmseg.models import SegDataPreProcessor

    image = torch.randint(0, 256, (3, 16, 16), dtype=torch.uint8)
    for convert in (False, True):
        preprocessor = SegDataPreProcessor(
            mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375], bgr_to_rgb=convert, size=(16, 16)
        )
        normalized = preprocessor(dict(inputs=[image]), training=False)['inputs']
        assert np.array_equal(denormalize(normalized, preprocessor)[0], image.flip(0).permute(1, 2, 0).numpy())
