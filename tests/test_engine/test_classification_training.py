"""Classifiers under the runner: resuming, moving averages, hooks, and what is checked before training."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('mmpretrain')
import cv2
import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmengine.runner import Runner
from torch import Tensor

from mmssl.engine.resumable import make_resumable
from mmssl.utils.checks import quick_check

CLASSES = ('blue', 'green', 'red')
BRANCHES = ['sup', 'unsup_weak', 'unsup_strong']


@pytest.fixture(scope='module')
def image_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three classes by color, 4 labeled, 6 unlabeled and 3 validation images each, 16 x 16 pixels."""
    root, rng = tmp_path_factory.mktemp('classes'), np.random.default_rng(0)
    for split, count in dict(labeled=4, unlabeled=6, val=3).items():
        for channel, name in enumerate(CLASSES):
            folder = root / split / name
            folder.mkdir(parents=True)
            for number in range(count):
                image = rng.normal(90, 30, (16, 16, 3))
                image[..., channel] += 60
                cv2.imwrite(str(folder / f'{number}.png'), image.clip(0, 255).astype(np.uint8))
    return root


@pytest.fixture
def make_config(image_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Config]:
    """A config of ``mmssl.PseudoLabelClassifier`` that trains 6 iterations, with checkpoints at 3 and 6."""
    # The runner formats the config five times, which takes longer than the training.
    monkeypatch.setattr(Config, 'pretty_text', property(lambda config: repr(config._cfg_dict.to_dict())))

    def make(name: str = 'run', hooks: list[dict] | None = None, truth: bool = True, **semi_train_cfg: Any) -> Config:
        load, pack = dict(type='LoadImageFromFile'), dict(type='PackInputs')
        weak = [dict(type='RandomFlip', prob=0.5, direction='horizontal')]
        strong = [*weak, dict(type='ColorJitter', brightness=0.5, contrast=0.5), pack]
        folder = dict(type='CustomDataset', data_root=str(image_folder), classes=list(CLASSES), with_label=True)
        unlabeled = dict(folder, data_prefix='unlabeled')
        if not truth:
            unlabeled = dict(type='mmssl.UnlabeledImageDataset', data_root=str(image_folder), img_path='unlabeled')
        validation = dict(
            batch_size=4, num_workers=0, sampler=dict(type='DefaultSampler', shuffle=False),
            dataset=dict(folder, data_prefix='val', pipeline=[load, pack]))  # fmt: skip
        classifier = dict(
            type='ImageClassifier',
            backbone=dict(type='ResNet_CIFAR', depth=18, stem_channels=4, base_channels=4),
            neck=dict(type='GlobalAveragePooling'),
            head=dict(type='LinearClsHead', num_classes=3, in_channels=32, loss=dict(type='CrossEntropyLoss')),
        )
        return Config(dict(
            default_scope='mmpretrain',
            custom_imports=dict(imports=['mmssl'], allow_failed_imports=False),
            randomness=dict(seed=1),
            log_level='WARNING',
            work_dir=str(tmp_path / name),
            experiment_name=f'{tmp_path.name}-{name}',
            data_preprocessor=dict(mean=[127.5] * 3, std=[60.0] * 3),
            model=dict(type='mmssl.PseudoLabelClassifier', classifier=classifier, semi_train_cfg=semi_train_cfg),
            custom_hooks=[dict(type='mmssl.IterationSeedHook'), *(hooks or [])],
            optim_wrapper=dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.1, momentum=0.9)),
            train_dataloader=dict(
                batch_size=9, num_workers=0, collate_fn=dict(type='pseudo_collate'),
                sampler=dict(type='mmssl.MultiSourceSampler', source_ratio=[1, 2]),
                dataset=dict(type='mmssl.MultiSourceDataset', sources=dict(
                    labeled=dict(folder, data_prefix='labeled', pipeline=[
                        load, dict(type='mmssl.MultiBranch', branches=BRANCHES, sup=[*weak, pack])]),
                    unlabeled=dict(unlabeled, pipeline=[
                        load, dict(type='mmssl.MultiBranch', branches=BRANCHES, unsup_weak=[*weak, pack],
                                   unsup_strong=strong)])))),
            train_cfg=dict(type='IterBasedTrainLoop', max_iters=6, val_interval=3),
            val_dataloader=validation, val_evaluator=dict(type='Accuracy', topk=(1,)), val_cfg=dict(type='ValLoop'),
            test_dataloader=validation, test_evaluator=dict(type='Accuracy', topk=(1,)),
            test_cfg=dict(type='TestLoop'),
            default_hooks=dict(
                logger=dict(type='LoggerHook', interval=1),
                checkpoint=dict(type='CheckpointHook', by_epoch=False, interval=3)),
            visualizer=dict(type='UniversalVisualizer', vis_backends=[dict(type='LocalVisBackend')],
                            name=f'{tmp_path.name}-{name}')))  # fmt: skip

    return make


def train(cfg: Config) -> Runner:
    runner = Runner.from_cfg(cfg)
    make_resumable(runner)
    runner.train()
    return runner


def checkpoint(name: str, cfg: Config) -> dict:
    return torch.load(Path(cfg.work_dir) / name, map_location='cpu', weights_only=False)


def of(kind: str, **options: Any) -> dict:
    return dict(type=f'mmssl.{kind}', **options)


RUNS = dict(
    flexmatch=(dict(threshold=of('FlexMatchThreshold', threshold=0.4)), [of('FlexMatchHook')]),
    freematch_ema=(
        dict(threshold=of('SelfAdaptiveThreshold', momentum=0.1), fairness_weight=0.01, unsup_ramp=5),
        [dict(type='EMAHook', momentum=0.1)]),
    dash=(dict(threshold=of('DashThreshold', interval=2), target='soft', unsup_begin=2), []),
    softmatch_teacher=(
        dict(threshold=of('SoftMatchWeight', momentum=0.1), alignment=of('DistributionAlignment'), teacher='ema'),
        [of('MeanTeacherHook', momentum=0.1)]),
    adamatch=(
        dict(threshold=of('AdaMatchThreshold'), alignment=of('DistributionAlignment', target='labeled', momentum=0.1)),
        []),
)  # fmt: skip


@pytest.mark.parametrize('name', RUNS)
def test_a_resumed_run_ends_in_the_same_numbers(make_config: Callable, name: str) -> None:
    options, hooks = RUNS[name]
    whole = make_config('whole', hooks=hooks, **options)
    train(whole)
    resumed = make_config('resumed', hooks=hooks, **options)
    resumed.load_from, resumed.resume = str(Path(whole.work_dir) / 'iter_3.pth'), True
    train(resumed)
    expected, found, before = checkpoint('iter_6.pth', whole), checkpoint('iter_6.pth', resumed), checkpoint(
        'iter_3.pth', whole
    )  # fmt: skip
    keys = [key for key in ('state_dict', 'ema_state_dict') if key in expected]
    for key in keys:
        for part, value in expected[key].items():
            assert torch.equal(value, found[key][part]), f'{key}: {part}'
    after, earlier = expected['state_dict'], before['state_dict']
    moved = {part for part, value in after.items() if not torch.equal(value, earlier[part])}
    statistics = [part for part in expected['state_dict'] if part.startswith(('threshold.', 'alignment.'))]
    assert any(part in moved for part in statistics if part != 'alignment.target') or not statistics


@pytest.mark.parametrize('name', ['freematch_ema', 'softmatch_teacher'])
def test_evaluation_of_the_checkpoint_is_what_was_logged(make_config: Callable, name: str) -> None:
    options, hooks = RUNS[name]
    cfg = make_config('trained', hooks=hooks, **options)
    runner = train(cfg)
    logged = runner.message_hub.get_scalar('val/accuracy/top1').current()
    with torch.no_grad():
        own = [v for k, v in runner.model.state_dict().items() if k.startswith('student') and v.is_floating_point()]
        scale = sum(float(value.abs().sum()) for value in own)
    tested = make_config('tested', hooks=[], **options)
    tested.load_from = str(Path(cfg.work_dir) / 'iter_6.pth')
    tester = Runner.from_cfg(tested)
    metrics = tester.test()
    assert metrics['accuracy/top1'] == pytest.approx(logged, abs=1e-6)
    if name == 'freematch_ema':  # the average was evaluated, not the student
        loaded = [
            v for k, v in tester.model.state_dict().items() if k.startswith('student') and v.is_floating_point()
        ]
        assert sum(float(value.abs().sum()) for value in loaded) != scale


def test_flexmatch_knows_its_images(make_config: Callable) -> None:
    runner = train(make_config(hooks=RUNS['flexmatch'][1], truth=False, **RUNS['flexmatch'][0]))
    table: Tensor = runner.model.threshold.last_prediction
    assert len(table) == 18 and (table >= 0).any()
    assert {'unsup_mask_ratio', 'unsup_threshold', 'unsup_loss'} <= {
        key.removeprefix('train/') for key in runner.message_hub.log_scalars
    }


def test_flexmatch_hook_and_moving_average_of_another_data_set(make_config: Callable) -> None:
    """A new run from the weights of one on other images begins with an empty table; a resumed one is refused."""
    options, hooks = RUNS['flexmatch']
    hooks = [*hooks, dict(type='EMAHook', momentum=0.1)]
    first = make_config('first', hooks=hooks, **options)
    first.train_dataloader.dataset.sources.unlabeled.data_prefix = 'labeled'
    first.train_dataloader.dataset.allow_overlap = True
    train(first)
    second = make_config('second', hooks=hooks, **options)
    second.load_from = str(Path(first.work_dir) / 'iter_6.pth')
    runner = train(second)
    assert len(runner.model.threshold.last_prediction) == 18
    third = make_config('third', hooks=hooks, **options)
    third.load_from, third.resume = str(Path(first.work_dir) / 'iter_3.pth'), True
    with pytest.raises(ValueError, match=r'knows 12 unlabeled images, but .* has 18'):
        train(third)


def test_hooks_that_are_missing_or_out_of_place(make_config: Callable) -> None:
    init_default_scope('mmpretrain')
    options, hooks = RUNS['flexmatch']
    with pytest.raises(ValueError, match='FlexMatchHook'):
        quick_check(make_config(**options))
    with pytest.raises(ValueError, match='MeanTeacherHook'):
        quick_check(make_config(teacher='ema'))
    with pytest.raises(ValueError, match='FlexMatchHook needs a model'):
        train(make_config(hooks=hooks))
    with pytest.raises(ValueError, match=r"semi_train_cfg\.teacher='ema'"):
        train(make_config('other', hooks=[of('MeanTeacherHook')]))
    quick_check(make_config(hooks=hooks, **options))
