"""Classifiers under the runner: resuming, moving averages, hooks, and what is checked before training."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('mmpretrain')
import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmengine.runner import Runner
from torch import Tensor

from mmssl.engine.resumable import make_resumable
from mmssl.utils.checks import quick_check


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
def test_a_resumed_run_ends_in_the_same_numbers(classification_config: Callable, name: str) -> None:
    options, hooks = RUNS[name]
    whole = classification_config('whole', hooks=hooks, **options)
    train(whole)
    resumed = classification_config('resumed', hooks=hooks, **options)
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
def test_evaluation_of_the_checkpoint_is_what_was_logged(classification_config: Callable, name: str) -> None:
    options, hooks = RUNS[name]
    cfg = classification_config('trained', hooks=hooks, **options)
    runner = train(cfg)
    logged = runner.message_hub.get_scalar('val/accuracy/top1').current()
    with torch.no_grad():
        own = [v for k, v in runner.model.state_dict().items() if k.startswith('student') and v.is_floating_point()]
        scale = sum(float(value.abs().sum()) for value in own)
    tested = classification_config('tested', hooks=[], **options)
    tested.load_from = str(Path(cfg.work_dir) / 'iter_6.pth')
    tester = Runner.from_cfg(tested)
    metrics = tester.test()
    assert metrics['accuracy/top1'] == pytest.approx(logged, abs=1e-6)
    if name == 'freematch_ema':  # the average was evaluated, not the student
        loaded = [
            v for k, v in tester.model.state_dict().items() if k.startswith('student') and v.is_floating_point()
        ]
        assert sum(float(value.abs().sum()) for value in loaded) != scale


def test_flexmatch_knows_its_images(classification_config: Callable) -> None:
    runner = train(classification_config(hooks=RUNS['flexmatch'][1], truth=False, **RUNS['flexmatch'][0]))
    table: Tensor = runner.model.threshold.last_prediction
    assert len(table) == 18 and (table >= 0).any()
    assert {'unsup_mask_ratio', 'unsup_threshold', 'unsup_loss'} <= {
        key.removeprefix('train/') for key in runner.message_hub.log_scalars
    }


def test_flexmatch_hook_and_moving_average_of_another_data_set(classification_config: Callable) -> None:
    """A new run from the weights of one on other images begins with an empty table; a resumed one is refused."""
    options, hooks = RUNS['flexmatch']
    hooks = [*hooks, dict(type='EMAHook', momentum=0.1)]
    first = classification_config('first', hooks=hooks, **options)
    first.train_dataloader.dataset.sources.unlabeled.data_prefix = 'labeled'
    first.train_dataloader.dataset.allow_overlap = True
    train(first)
    second = classification_config('second', hooks=hooks, **options)
    second.load_from = str(Path(first.work_dir) / 'iter_6.pth')
    runner = train(second)
    assert len(runner.model.threshold.last_prediction) == 18
    third = classification_config('third', hooks=hooks, **options)
    third.load_from, third.resume = str(Path(first.work_dir) / 'iter_3.pth'), True
    with pytest.raises(ValueError, match=r'knows 12 unlabeled images, but .* has 18'):
        train(third)


def test_hooks_that_are_missing_or_out_of_place(classification_config: Callable) -> None:
    init_default_scope('mmpretrain')
    options, hooks = RUNS['flexmatch']
    with pytest.raises(ValueError, match='FlexMatchHook'):
        quick_check(classification_config(**options))
    with pytest.raises(ValueError, match='MeanTeacherHook'):
        quick_check(classification_config(teacher='ema'))
    with pytest.raises(ValueError, match='FlexMatchHook needs a model'):
        train(classification_config(hooks=hooks))
    with pytest.raises(ValueError, match=r"semi_train_cfg\.teacher='ema'"):
        train(classification_config('other', hooks=[of('MeanTeacherHook')]))
    quick_check(classification_config(hooks=hooks, **options))


def test_diagnostics_of_pseudo_labels(classification_config: Callable) -> None:
    options, hooks = RUNS['flexmatch']
    hook = of('PseudoLabelDiagnosticsHook', interval=3)
    runner = train(classification_config(hooks=[*hooks, hook], **options))
    scalars = runner.message_hub.log_scalars
    assert scalars['train/unsup_pseudo_acc'].data[1].sum() == 2  # of six iterations
    shares = [scalars[f'train/unsup_class_share/{name}'].current() for name in ('blue', 'green', 'red')]
    assert sum(shares) == pytest.approx(1) and 'train/unsup_class_threshold/red' in scalars
    assert 0 <= scalars['train/unsup_pseudo_acc'].current() <= 1

    runner = train(classification_config('other', hooks=[*hooks, hook], truth=False, **options))
    assert 'train/unsup_class_share/red' in runner.message_hub.log_scalars
    assert 'train/unsup_pseudo_acc' not in runner.message_hub.log_scalars
    with pytest.raises(ValueError, match='FPLDiagnosticsHook needs a semi-supervised segmentor'):
        train(classification_config('third', hooks=[*hooks, of('FPLDiagnosticsHook')], **options))
