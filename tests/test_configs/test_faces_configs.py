"""Every config of face verification: the published recipe, one training step, and an evaluation on drawn faces."""

from pathlib import Path

import cv2
import numpy as np
import pytest

pytest.importorskip('mmpretrain')
from mmengine.config import Config
from mmengine.runner import Runner

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = sorted(path.name for path in (ROOT / 'configs/adr/faces').glob('*.py'))
BENCHMARKS = ['lfw', 'calfw', 'cplfw', 'agedb_30', 'cfp_ff', 'cfp_fp']
HEADS = {'ce': 'LinearClsHead', 'arcface': 'ArcFaceClsHead', 'cosface': 'mmssl.CosFaceClsHead'}


@pytest.fixture(scope='module')
def faces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three people with two images each, and pairs of them for every benchmark."""
    root = tmp_path_factory.mktemp('faces')
    for person in range(3):
        for image in range(2):
            path = root / f'casia/{person}/{image}.png'
            path.parent.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(path), np.full((112, 112, 3), 60 * person + 20 * image, np.uint8))
    for name in BENCHMARKS:
        (root / 'pairs' / name).mkdir(parents=True)
        cv2.imwrite(str(root / f'pairs/{name}/0.png'), np.full((112, 112, 3), 99, np.uint8))
        # Whatever the network: of two pairs of equal images, one of which is called different, one half is right.
        (root / f'pairs/{name}/pairs.txt').write_text('0.png 0.png 0\n0.png 0.png 1\n' * 2)
    return root


@pytest.fixture
def environment(faces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('CASIA_ROOT', str(faces / 'casia'))
    monkeypatch.setenv('FACE_PAIRS_ROOT', str(faces / 'pairs'))


@pytest.mark.parametrize('name', CONFIGS)
def test_recipe(environment, name):
    cfg = Config.fromfile(ROOT / 'configs/adr/faces' / name)
    assert cfg.train_dataloader.batch_size == cfg.auto_scale_lr.base_batch_size == 512
    optimizer, schedule = cfg.optim_wrapper.optimizer, cfg.param_scheduler[0]
    assert (optimizer.type, optimizer.lr, optimizer.momentum, optimizer.weight_decay) == ('SGD', 0.1, 0.9, 5e-4)
    assert (schedule.milestones, schedule.gamma, cfg.train_cfg.max_iters) == ([20000, 28000], 0.1, 32000)
    method = name.partition('_')[0]
    head = cfg.model.head
    assert head.type == HEADS[method.removeprefix('adr-')] and head.in_channels == cfg.model.neck.out_channels == 512
    assert head.num_classes == cfg.model.data_preprocessor.num_classes == 10572
    if 'face' in method:
        assert head.scale == 64 and head.margins == (0.5 if 'arc' in method else 0.35)
    losses = [loss.type for loss in head.loss.get('losses', [head.loss])]
    assert losses == ['CrossEntropyLoss', 'mmssl.ADRLoss'][:1 + method.startswith('adr-')]
    assert cfg.val_cfg.flip and cfg.test_cfg.flip and cfg.test_evaluator == cfg.val_evaluator
    assert [dataset.name for dataset in cfg.val_dataloader.dataset.datasets] == BENCHMARKS


@pytest.mark.parametrize('name', CONFIGS)
def test_one_step_and_evaluation(environment, tmp_path, name):
    cfg = Config.fromfile(ROOT / 'configs/adr/faces' / name)
    cfg.merge_from_dict({
        'work_dir': str(tmp_path), 'experiment_name': name + tmp_path.name, 'custom_hooks': [],
        'model.backbone': dict(base_channels=8, stem_channels=8), 'model.neck.in_channels': 64,
        'model.head.num_classes': 3, 'model.data_preprocessor.num_classes': 3,
        'train_dataloader': dict(batch_size=4, num_workers=0, persistent_workers=False),
        'val_dataloader': dict(num_workers=0, persistent_workers=False), 'val_evaluator.num_folds': 2,
        'train_cfg.max_iters': 1, 'train_cfg.val_interval': 1, 'test_dataloader': None, 'test_cfg': None,
        'test_evaluator': None, 'default_hooks.checkpoint': dict(save_best=None, rule=None),
    })  # fmt: skip
    runner = Runner.from_cfg(cfg)
    runner.train()
    logged = runner.message_hub.log_scalars
    assert np.isfinite(logged['train/loss'].current()) and logged['train/loss'].current() > 0
    found = {name: logged[f'val/verification/{name}/accuracy'].current() for name in BENCHMARKS}
    assert set(found.values()) == {50} and logged['val/verification/accuracy'].current() == 50
