"""Side-by-side validation through a real runner, and the warning about a teacher that is worse than its student."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('mmseg')
import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import Runner

from mmssl.engine.loops import SubModelValLoop


class Batches(Hook):
    """Makes the sub-models as different as trained ones, and counts what a hook sees of a validation."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def before_val(self, runner: Runner) -> None:
        for model in runner.model.models_held:
            torch.nn.init.normal_(model.decode_head.conv_seg.weight)

    def after_val_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        self.seen.append(runner.model.semi_test_cfg['predict_on'])


def cps(config: Config) -> None:
    config.model.type = 'mmssl.CrossPseudoSupervision'
    config.model.pop('semi_train_cfg')
    config.custom_hooks = []


@pytest.mark.parametrize(
    ('method', 'predict_on', 'names'),
    [
        ('mean teacher', 'student', ['student', 'teacher']),
        ('cps', 'ensemble', ['student1', 'student2', 'ensemble']),
    ],
)
def test_each_metric_is_that_of_the_model_alone(
    mean_teacher_config: Config, method: str, predict_on: str, names: list[str]
) -> None:
    config = mean_teacher_config
    if method == 'cps':
        cps(config)
    config.model.semi_test_cfg = dict(predict_on=predict_on)
    config.val_cfg = dict(type='mmssl.SubModelValLoop')
    config.train_cfg.update(max_iters=2, val_interval=2)
    config.custom_hooks.append(dict(type='mmssl.IterationSeedHook'))
    config.default_hooks.checkpoint.update(save_best='mIoU', interval=2)
    runner, batches = Runner.from_cfg(config), Batches()
    runner.register_hook(batches)
    runner.train()
    runner.hooks.remove(batches)
    assert batches.seen == [predict_on] * 4
    assert runner.model.semi_test_cfg['predict_on'] == predict_on
    log = next(Path(runner.log_dir).glob('vis_data/scalars.json')).read_text().splitlines()
    logged = json.loads(log[-1])

    alone = runner.build_val_loop(dict(type='ValLoop'))
    found = {}
    for name in names:
        runner.model.semi_test_cfg['predict_on'] = name
        found[name] = alone.run()
    assert set(found[names[0]]) >= {'mIoU', 'aAcc'}
    for name in names:
        for key, value in found[name].items():
            assert logged[f'{name}/{key}'] == pytest.approx(value, abs=1e-9)
            if name == predict_on:
                assert logged[key] == logged[f'{name}/{key}']
    assert len({tuple(metrics.items()) for metrics in found.values()}) == len(names)
    assert list(Path(config.work_dir).glob('best_mIoU_iter_2.pth'))


def run_with(runner: Runner, monkeypatch: pytest.MonkeyPatch, scores: list[tuple[float, float]]) -> list[str]:
    """Validations whose metrics are given, as (student, teacher); returns the warnings."""
    messages: list[str] = []
    monkeypatch.setattr('mmssl.engine.loops.sub_model_val_loop.print_log', lambda text, **_: messages.append(text))
    loop = runner.val_loop
    for student, teacher in scores:
        values = dict(student=student, teacher=teacher)
        monkeypatch.setattr(
            loop, '_evaluate',
            lambda with_hooks, values=values: dict(mIoU=values[runner.model.semi_test_cfg['predict_on']]),
        )  # fmt: skip
        metrics = loop.run()
        assert list(metrics) == ['mIoU', 'student/mIoU', 'teacher/mIoU']
        assert metrics['mIoU'] == teacher
    return messages


def test_teacher_that_stays_worse_is_warned_about_once(
    mean_teacher_config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    mean_teacher_config.val_cfg = dict(type='mmssl.SubModelValLoop')
    mean_teacher_config.model.semi_train_cfg = dict(unsup_begin=3)
    runner = Runner.from_cfg(mean_teacher_config)
    worse = (50.0, 40.0)
    model, loop = runner.model, runner.val_loop
    assert isinstance(loop, SubModelValLoop)
    # Not before the unsupervised loss has begun, nor while the teacher still is the mean of all students.
    assert run_with(runner, monkeypatch, [worse] * 3) == []
    model.iteration.fill_(9)
    model._host_iteration = None
    model.update_teacher(1.0)
    assert run_with(runner, monkeypatch, [worse] * 3) == []
    for _ in range(10):
        model.update_teacher(0.1)
    # One bad validation, a difference within noise, a better teacher.
    assert run_with(runner, monkeypatch, [worse, (50.0, 49.5), worse, (40.0, 50.0)]) == []
    messages = run_with(runner, monkeypatch, [worse] * 4)
    assert len(messages) == 1
    assert 'mIoU 40.00 against 50.00' in messages[0] and 'MeanTeacherHook' in messages[0]


def test_unsuitable_settings_name_their_keys(mean_teacher_config: Config) -> None:
    mean_teacher_config.val_cfg = dict(type='mmssl.SubModelValLoop', models=['student', 'professor'])
    runner = Runner.from_cfg(mean_teacher_config)
    with pytest.raises(ValueError, match=r"val_cfg\.models: the model holds .*'professor'"):
        runner.val()
    with pytest.raises(ValueError, match=r"val_cfg\.models must be None or a list .* 'student'"):
        runner.build_val_loop(dict(type='mmssl.SubModelValLoop', models='student'))
    plain = mean_teacher_config
    plain.val_cfg = dict(type='mmssl.SubModelValLoop')
    plain.model, plain.custom_hooks = plain.model.segmentor, []
    plain.experiment_name = plain.visualizer.name = f'{plain.experiment_name}-plain'
    with pytest.raises(ValueError, match=r'val_cfg\.type: .* model\.type=EncoderDecoder; use ValLoop'):
        Runner.from_cfg(plain).val()
