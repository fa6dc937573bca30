"""GradReLUHook and EMAHeadHook through a real runner: order, accumulation, resume, EMA copies, and what is refused."""

from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip('mmseg')
import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.registry import HOOKS, MODELS, init_default_scope
from mmengine.runner import Runner
from torch import nn

from mmssl.engine.hooks import EMAHeadHook, GradReLUHook
from mmssl.utils.cli import check_weights

RELU = dict(type='mmssl.GradReLUHook', layers=['decode_head.conv_seg'])
HEAD = dict(type='mmssl.EMAHeadHook', layer='decode_head.conv_seg')
EMA_HEAD, GRAD_RELU = (f'custom_hooks: mmssl.{name}' for name in ('EMAHeadHook', 'GradReLUHook'))


class Watch(Hook):
    """Keeps the main and the averaged layer: as the loss saw them, and after each iteration."""

    priority = 'LOWEST'

    def __init__(self) -> None:
        self.before: list[torch.Tensor] = []
        self.after: list[torch.Tensor] = []
        self.average: list[torch.Tensor] = []
        self.steps: list[int] = []

    def before_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        self.before.append(main(runner.model))

    def after_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        self.after.append(main(runner.model))
        self.average.append(runner.model.average_head.weights('student')['weight'].clone())
        self.steps.append(int(runner.model.average_head.step))


def main(model: nn.Module) -> torch.Tensor:
    return model.student.decode_head.conv_seg.weight.detach().clone()


@pytest.fixture
def config(mean_teacher_config: Config) -> Config:
    config = mean_teacher_config
    for key in ('val_dataloader', 'val_evaluator', 'val_cfg'):
        config.pop(key)
    config.train_cfg.pop('val_interval')
    config.custom_hooks = [dict(type='mmssl.MeanTeacherHook', momentum=0.1), dict(type='mmssl.IterationSeedHook')]
    return config


def train(config: Config, *hooks: dict, watch: bool = True, **changes: Any) -> tuple[Runner, Watch]:
    config = deepcopy(config)
    config.merge_from_dict(changes)
    config.custom_hooks = [*config.custom_hooks, *hooks]
    runner, watching = Runner.from_cfg(config), Watch()
    if watch:
        runner.register_hook(watching)
    runner.train()
    return runner, watching


def test_resets_come_before_the_update_and_steps_after_it(config: Config) -> None:
    _, watch = train(config, RELU, dict(HEAD, momentum=1.0, lr=1e-4, reset_interval=4))
    assert watch.steps == [1, 2, 3, 4, 5, 6]
    for t, (before, average) in enumerate(zip(watch.before, watch.average, strict=True)):
        start = before if t % 4 == 0 else watch.average[t - 1]
        # The average makes a small step; the layer itself moves much further, and was copied before it did.
        assert 0 < (average - start).norm() < 0.1 * (watch.after[t] - before).norm()


def test_without_a_step_the_average_is_a_snapshot(config: Config) -> None:
    _, watch = train(config, dict(HEAD, lr=0.0, reset_interval=2))
    for t, average in enumerate(watch.average):
        assert torch.equal(average, watch.before[t - t % 2])


def test_accumulation_counts_optimizer_steps(config: Config) -> None:
    hook = dict(HEAD, lr=0.0, reset_interval=2)
    _, watch = train(config, RELU, hook, **{'optim_wrapper.accumulative_counts': 2})
    assert watch.steps == [0, 1, 1, 2, 2, 3]
    for t, average in enumerate(watch.average):
        assert torch.equal(average, watch.before[0 if t < 4 else 4])
    with pytest.raises(ValueError, match=r'lookahead=True .*accumulative_counts=2'):
        train(config, dict(HEAD, lookahead=True), watch=False, **{'optim_wrapper.accumulative_counts': 2})


@pytest.mark.parametrize('lookahead', [False, True])
def test_a_resumed_run_ends_in_the_same_weights(config: Config, tmp_path: Path, lookahead: bool) -> None:
    hooks = RELU, dict(HEAD, momentum=1.0, lr=0.2, reset_interval=5, lookahead=lookahead)
    straight, _ = train(config, *hooks)
    folder = Path(config.work_dir)
    (folder / 'last_checkpoint').write_text(str(folder / 'iter_3.pth'))
    state = torch.load(folder / 'iter_3.pth', weights_only=False)['state_dict']
    torch.save(state, tmp_path / 'state.pth')
    assert {'average_head.step', 'average_head.student.weight', 'average_head.student.bias'} <= set(
        torch.load(tmp_path / 'state.pth', weights_only=True))  # fmt: skip
    assert state['average_head.step'] == 3 and state['average_head.student.weight'].dtype == torch.float32
    resumed, watch = train(config, *hooks, resume=True, experiment_name='resumed')
    assert watch.steps == [4, 5, 6]
    for name, value in straight.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[name], value), name


def test_a_new_run_from_a_checkpoint_counts_anew(config: Config) -> None:
    train(config, dict(HEAD, lr=0.0))
    path = str(Path(config.work_dir) / 'iter_6.pth')
    loaded = torch.load(path, weights_only=False)['state_dict']['student.decode_head.conv_seg.weight']
    _, watch = train(config, dict(HEAD, lr=0.0), load_from=path, experiment_name='second')
    assert watch.steps[0] == 1 and torch.equal(watch.average[0], loaded)


def test_a_run_without_the_hook_loads_the_checkpoint_and_says_what_it_drops(
    config: Config, capfd: pytest.CaptureFixture
) -> None:
    train(config, HEAD)
    path = str(Path(config.work_dir) / 'iter_6.pth')
    runner, _ = train(config, watch=False, load_from=path, experiment_name='without', log_level='INFO')
    said = ''.join(capfd.readouterr())
    assert 'unexpected key in source state_dict' in said and 'average_head.student.weight' in said
    assert runner.model.average_head is None


def test_the_check_of_a_checkpoint_knows_the_averaged_layer(config: Config) -> None:
    """What tools/train.py --resume and tools/test.py ask before they build a runner."""
    init_default_scope('mmseg')
    model = MODELS.build(config.model)
    plain = dict(model.state_dict())
    EMAHeadHook(HEAD['layer']).add_weights(model)
    whole = dict(model.state_dict())
    without, config.custom_hooks = deepcopy(config), [*config.custom_hooks, HEAD]
    check_weights(config, whole, '--resume', exact=True)
    check_weights(without, plain, '--resume', exact=True)
    for cfg in (config, without):
        for state in (plain, whole):
            check_weights(cfg, state, 'checkpoint', exact=False)
    with pytest.raises(ValueError, match=r'average_head.step is not a weight of this model'):
        check_weights(without, whole, '--resume', exact=True)
    with pytest.raises(ValueError, match=r'average_head.step is missing'):
        check_weights(config, plain, '--resume', exact=True)


def test_ema_hook_averages_a_model_that_has_the_averaged_layer(config: Config) -> None:
    """Its copy is made after ours is attached, and takes over buffers after they have moved."""
    config.custom_hooks = [dict(type='EMAHook', momentum=0.5), *config.custom_hooks]
    runner, _ = train(config, RELU, dict(HEAD, lr=0.2, momentum=1.0))
    ema = next(hook for hook in runner.hooks if type(hook).__name__ == 'EMAHook').ema_model.module
    for name, value in runner.model.average_head.state_dict().items():
        assert torch.equal(ema.average_head.state_dict()[name], value)


def test_grad_relu_by_construction_and_by_name_train_alike(config: Config) -> None:
    ours, by_name, plain = (
        train(config, *hooks, watch=False, experiment_name=f'run{index}')[0].model.state_dict()
        for index, hooks in enumerate([[RELU], [dict(RELU, supervised=['sup_*'])], []])
    )
    for name, value in ours.items():
        torch.testing.assert_close(by_name[name], value, rtol=1e-3, atol=1e-5)
    name = 'student.decode_head.conv_seg.weight'
    assert not torch.allclose(ours[name], plain[name], rtol=1e-3, atol=1e-5)


# --- what a user gets wrong -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(('arguments', 'key'), [
    (dict(layers='decode_head'), 'layers must be a list'),
    (dict(layers=[]), 'layers must be a list'),
    (dict(layers=['a'], supervised='sup_*'), 'supervised must be a list'),
    (dict(layers=['a'], supervised=[]), 'supervised must be a list'),
])  # fmt: skip
def test_bad_arguments_of_grad_relu(arguments: dict, key: str) -> None:
    with pytest.raises(ValueError, match=f'{GRAD_RELU}.{key}'):
        HOOKS.build(dict(type='mmssl.GradReLUHook', **arguments))


@pytest.mark.parametrize(('arguments', 'key'), [
    (dict(layer=['a']), 'layer must be the name'),
    (dict(layer=''), 'layer must be the name'),
    (dict(momentum=1.5), r'momentum must be in \[0, 1\]'),
    (dict(momentum='0.1'), 'momentum must be'),
    (dict(reset_interval=0), 'reset_interval must be an integer >= 1'),
    (dict(reset_interval=2.0), 'reset_interval must be'),
    (dict(lr=-1.0), 'lr must be a finite number >= 0'),
    (dict(lr=float('nan')), 'lr must be'),
    (dict(loss_weight=float('inf')), 'loss_weight must be'),
    (dict(lookahead=1), 'lookahead must be True or False'),
])  # fmt: skip
def test_bad_arguments_of_the_averaged_layer(arguments: dict, key: str) -> None:
    with pytest.raises(ValueError, match=f'{EMA_HEAD}.{key}'):
        HOOKS.build(dict(dict(type='mmssl.EMAHeadHook', layer='a'), **arguments))


def test_a_decay_for_momentum_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[str] = []
    monkeypatch.setattr('mmssl.engine.hooks.ema_head_hook.print_log', lambda message, **_: messages.append(message))
    EMAHeadHook('head.fc', momentum=0.999)
    EMAHeadHook('head.fc')
    assert len(messages) == 1 and 'momentum=0.001' in messages[0]


def runner_of(model: nn.Module, *hooks: Hook, **cfg: Any) -> Any:
    return SimpleNamespace(model=model, hooks=list(hooks), cfg=cfg, iter=0)


def test_models_and_hooks_that_do_not_fit() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    hook = EMAHeadHook('0')
    with pytest.raises(ValueError, match=f'{EMA_HEAD} needs a model .* got model.type=Sequential'):
        hook.before_run(runner_of(model, hook))
    relu = GradReLUHook(['0'])
    with pytest.raises(ValueError, match=f'{GRAD_RELU} is there twice'):
        relu.before_run(runner_of(model, relu, GradReLUHook(['0'])))
    for layers, words in ((['2'], "'2' matches no layer"), (['1'], 'no parameter that is trained')):
        with pytest.raises(ValueError, match=f'{GRAD_RELU}.layers: .*{words}'):
            GradReLUHook(layers).before_run(runner_of(model))
    with pytest.raises(ValueError, match='compile'):
        relu.before_run(runner_of(model, relu, compile=True))
    relu.before_run(runner_of(model, relu))
    with pytest.raises(ValueError, match=f'{GRAD_RELU}: model.type=Sequential was trained without'):
        relu.after_train_iter(runner_of(model, relu), 0)
    relu.after_run(runner_of(model, relu))
    assert not model._forward_hooks and not model._forward_pre_hooks


def test_the_hook_is_there_once(config: Config) -> None:
    with pytest.raises(ValueError, match=f'{EMA_HEAD} is there twice'):
        train(config, HEAD, dict(HEAD), watch=False)
    with pytest.raises(ValueError, match=f"{EMA_HEAD}.layer: 'head.fc' matches no layer .*decode_head.conv_seg"):
        train(config, dict(HEAD, layer='head.fc'), watch=False, experiment_name='typo')
