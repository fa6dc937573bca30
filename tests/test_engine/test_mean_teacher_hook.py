"""The teacher through a real runner: where it starts, when it moves, how a resumed run goes on, what is refused."""

import json
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('mmseg')
import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.registry import MODELS, init_default_scope
from mmengine.runner import Runner

from mmssl.engine.hooks import MeanTeacherHook


class Watch(Hook):
    """Keeps copies of student and teacher at the start and after every iteration."""

    priority = 'LOWEST'

    def __init__(self) -> None:
        self.start: dict[str, torch.Tensor] = {}
        self.students: list[dict[str, torch.Tensor]] = []
        self.teachers: list[dict[str, torch.Tensor]] = []

    def before_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None) -> None:
        if not self.start:
            self.start = state(runner.model)
            trains = runner.model.semi_train_cfg['teacher_mode'] == 'train'
            assert {module.training for module in runner.model.teacher.modules()} == {trains}

    def after_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        self.students.append(state(runner.model.student))
        self.teachers.append(state(runner.model.teacher))


def state(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return deepcopy(model.state_dict())


def train(config: Config) -> tuple[Runner, Watch]:
    config = deepcopy(config)
    for key in ('val_dataloader', 'val_evaluator', 'val_cfg'):
        config.pop(key)
    config.train_cfg.pop('val_interval')
    runner, watch = Runner.from_cfg(config), Watch()
    runner.register_hook(watch)
    runner.train()
    return runner, watch


def test_teacher_is_the_average_of_the_students(mean_teacher_config: Config) -> None:
    _, watch = train(mean_teacher_config)
    expected = None
    for step, (student, teacher) in enumerate(zip(watch.students, watch.teachers, strict=True)):
        momentum = max(1 / (step + 1), 0.1)
        expected = student if expected is None else {
            name: (1 - momentum) * value + momentum * student[name] if value.is_floating_point() else student[name]
            for name, value in expected.items()
        }  # fmt: skip
        for name, value in teacher.items():
            torch.testing.assert_close(value, expected[name], msg=lambda m, n=name: f'{n}: {m}')
    assert not torch.equal(watch.teachers[-1]['decode_head.conv_seg.weight'], student['decode_head.conv_seg.weight'])
    for name in ('backbone.stem.1.running_mean', 'backbone.stem.1.num_batches_tracked'):
        assert watch.teachers[-1][name].abs().sum() > 0


def test_teacher_starts_as_the_student_even_from_a_checkpoint_of_both(
    mean_teacher_config: Config, tmp_path: Path
) -> None:
    init_default_scope('mmseg')
    other = MODELS.build(mean_teacher_config.model).state_dict()
    other = {name: value + torch.rand(value.shape) if value.is_floating_point() else value + 2
             for name, value in other.items() if 'iteration' not in name}  # fmt: skip
    torch.save(dict(state_dict=other), tmp_path / 'both.pth')
    mean_teacher_config.load_from = str(tmp_path / 'both.pth')
    mean_teacher_config.train_cfg.max_iters = 1
    _, watch = train(mean_teacher_config)
    for name, value in watch.start.items():
        if name.startswith('teacher.'):
            assert torch.equal(value, watch.start[name.replace('teacher.', 'student.')])
            assert torch.equal(value, other[name.replace('teacher.', 'student.')]), name


def test_without_warmup_the_momentum_is_constant(mean_teacher_config: Config) -> None:
    mean_teacher_config.custom_hooks[0].update(warmup=False, momentum=0.01)
    mean_teacher_config.train_cfg.max_iters = 1
    _, watch = train(mean_teacher_config)
    name = 'decode_head.conv_seg.weight'
    expected = 0.99 * watch.start[f'teacher.{name}'] + 0.01 * watch.students[0][name]
    torch.testing.assert_close(watch.teachers[0][name], expected)


def test_momentum_one_makes_a_copy(mean_teacher_config: Config) -> None:
    mean_teacher_config.custom_hooks[0].update(momentum=1, buffers='copy')
    _, watch = train(mean_teacher_config)
    for student, teacher in zip(watch.students, watch.teachers, strict=True):
        assert all(torch.equal(value, student[name]) for name, value in teacher.items())


@pytest.mark.parametrize(('counts', 'interval'), [(2, 1), (1, 2), (4, 1)])
def test_teacher_moves_with_optimizer_steps_only(mean_teacher_config: Config, counts: int, interval: int) -> None:
    mean_teacher_config.optim_wrapper.accumulative_counts = counts
    mean_teacher_config.custom_hooks[0].update(interval=interval)
    runner, watch = train(mean_teacher_config)
    name = 'decode_head.conv_seg.weight'
    before = [watch.start[f'teacher.{name}'], *(teacher[name] for teacher in watch.teachers)]
    moved = [not torch.equal(a, b) for a, b in pairwise(before)]
    expected = [(i + 1) % (counts * interval) == 0 for i in range(6)]
    expected[-1] = True  # what is left of an accumulation is used at the end, which is a step too
    assert moved == expected
    assert runner.model.num_teacher_updates == sum(expected)


@pytest.mark.parametrize(('mode', 'rule'), [('train', 'own'), ('eval', 'average'), (None, 'own')])
def test_rule_of_buffers_follows_the_teachers_mode(mean_teacher_config: Config, mode: str | None, rule: str) -> None:
    mean_teacher_config.model.semi_train_cfg = {} if mode is None else dict(teacher_mode=mode)
    mean_teacher_config.train_cfg.max_iters = 1
    runner, _ = train(mean_teacher_config)
    assert next(hook for hook in runner.hooks if isinstance(hook, MeanTeacherHook)).rule == rule


@pytest.mark.parametrize('rule', ['average', 'copy', 'own'])
def test_resumed_run_ends_in_the_same_teacher(mean_teacher_config: Config, tmp_path: Path, rule: str) -> None:
    mean_teacher_config.custom_hooks[0].update(buffers=rule)
    mean_teacher_config.custom_hooks.append(dict(type='mmssl.IterationSeedHook'))
    mean_teacher_config.model.semi_train_cfg = dict(
        teacher_mode='train' if rule == 'own' else 'eval', mix=dict(type='mmssl.CutMix')
    )
    # A checkpoint in the middle of an accumulation would lose the gradients so far.
    mean_teacher_config.optim_wrapper.accumulative_counts = 2
    mean_teacher_config.default_hooks.checkpoint.interval = 2
    whole, _ = train(mean_teacher_config)
    resumed = deepcopy(mean_teacher_config)
    resumed.update(work_dir=str(tmp_path / 'resumed'), resume=True, load_from=f'{whole.work_dir}/iter_4.pth')
    resumed, _ = train(resumed)
    assert resumed.iter == whole.iter == 6
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, resumed.model.state_dict()[name]), name


def test_model_without_the_hook_fails(mean_teacher_config: Config) -> None:
    mean_teacher_config.custom_hooks = []
    with pytest.raises(ValueError, match=r'custom_hooks must hold mmssl\.MeanTeacherHook'):
        train(mean_teacher_config)


def test_unsuitable_settings_name_their_keys(mean_teacher_config: Config) -> None:
    config = deepcopy(mean_teacher_config)
    config.custom_hooks[0].update(buffers='own')
    with pytest.raises(ValueError, match=r"MeanTeacherHook\.buffers='own' .*teacher_mode='eval'"):
        train(config)
    config = deepcopy(mean_teacher_config)
    config.model.semi_train_cfg = dict(teacher_mode='train')
    config.custom_hooks[0].update(buffers='average')
    with pytest.raises(ValueError, match=r"MeanTeacherHook\.buffers='average' .*set buffers to 'own'"):
        train(config)
    config = deepcopy(mean_teacher_config)
    config.custom_hooks.append(deepcopy(config.custom_hooks[0]))
    with pytest.raises(ValueError, match='MeanTeacherHook is there twice'):
        train(config)
    config = deepcopy(mean_teacher_config)
    config.model.type = 'mmssl.CrossPseudoSupervision'
    config.model.pop('semi_train_cfg')
    with pytest.raises(ValueError, match=r'needs a model with a teacher, .*CrossPseudoSupervision'):
        train(config)


def test_average_of_averages_is_warned_about(mean_teacher_config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[str] = []
    monkeypatch.setattr('mmssl.engine.hooks.mean_teacher_hook.print_log', lambda text, **_: messages.append(text))
    mean_teacher_config.train_cfg.max_iters = 1
    train(mean_teacher_config)
    assert not messages
    mean_teacher_config.custom_hooks.append(dict(type='EMAHook'))
    train(mean_teacher_config)
    assert len(messages) == 1 and 'EMAHook' in messages[0]


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (dict(momentum=1.5), r'momentum must be in \[0, 1\].*got 1.5'),
        (dict(momentum='0.1'), "momentum must be .*got '0.1'"),
        (dict(warmup=3), 'warmup must be True or False, got 3'),
        (dict(buffers='mean'), r"buffers must be None or one of \['average', 'copy', 'own'\], got 'mean'"),
        (dict(interval=0), 'interval must be an integer >= 1, got 0'),
    ],
)
def test_wrong_arguments_name_their_key(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=f'custom_hooks: mmssl.MeanTeacherHook.{message}'):
        MeanTeacherHook(**options)


def test_diagnostics_and_pictures_of_the_student(mean_teacher_config: Config) -> None:
    config = mean_teacher_config
    unlabeled = config.train_dataloader.dataset.sources.unlabeled
    unlabeled.seg_map_path = 'ann_dir/train'
    unlabeled.pipeline.insert(1, dict(type='LoadAnnotations'))
    config.model.semi_train_cfg.update(
        mix=dict(type='mmssl.CutMix'), unsup_loss=dict(type='mmssl.FPLLoss'),
        feature_perturbation=dict(type='mmssl.FeatureDropout'),
    )  # fmt: skip
    config.custom_hooks += [
        dict(type='mmssl.FPLDiagnosticsHook', interval=1), dict(type='mmssl.PseudoLabelVisualizationHook', interval=2)
    ]  # fmt: skip
    config.train_cfg.max_iters = 2
    runner, _ = train(config)
    line = json.loads(next(Path(runner.log_dir).glob('vis_data/scalars.json')).read_text().splitlines()[-1])
    assert 0 <= line['unsup_pseudo_acc'] <= line['unsup_positive_acc'] <= 1
    assert {'unsup_value_unsup_strong', 'unsup_value_feature'} <= line.keys()
    assert list(Path(runner.log_dir).glob('vis_data/pseudo_labels/iter_2.png'))


@pytest.mark.parametrize('momentum', [0.999, 0.001, 0.5, 1])
def test_a_decay_in_place_of_the_momentum_is_warned_of(monkeypatch: pytest.MonkeyPatch, momentum: float) -> None:
    said = []
    monkeypatch.setattr('mmssl.engine.hooks.mean_teacher_hook.print_log', lambda message, **_: said.append(message))
    MeanTeacherHook(momentum=momentum)
    assert len(said) == (momentum == 0.999)
    assert not said or 'A decay of 0.999 is momentum=0.001' in said[0]
