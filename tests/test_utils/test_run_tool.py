"""``run_tool``: what an interrupt and several errors at once look like to a user."""

import argparse
from pathlib import Path

import pytest
import torch
from mmengine.config import Config

from mmssl.utils.checks import Report
from mmssl.utils.cli import comes_of_interrupt, locate, run_tool

ARGS = dict(local_rank=0, debug=False)


def interrupted_while_formatting(args: argparse.Namespace, setup_is_over) -> None:
    """What mmengine does when Ctrl-C comes while the config is formatted for a checkpoint."""
    setup_is_over()
    try:
        raise KeyboardInterrupt
    except:  # noqa: E722
        raise SyntaxError('Failed to format the config file: the whole config') from None


def interrupted(args: argparse.Namespace, setup_is_over) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize('tool', [interrupted, interrupted_while_formatting])
@pytest.mark.parametrize('debug', [False, True])
def test_interrupt_is_one_line_and_130(tool, debug: bool, tmp_path: Path, capsys) -> None:
    args = argparse.Namespace(**{**ARGS, 'debug': debug})
    assert run_tool(tool, args) == 130
    assert capsys.readouterr().err == 'interrupted\n'
    args.loaded_config, args.resume = Config(dict(work_dir=str(tmp_path))), None
    assert run_tool(tool, args) == 130
    assert capsys.readouterr().err == 'interrupted\n'  # there is nothing to resume from
    (tmp_path / 'iter_2.pth').write_bytes(b'')
    assert run_tool(tool, args) == 130
    assert capsys.readouterr().err == 'interrupted; continue with --resume\n'


def test_interrupt_while_mmengine_formats_the_config(monkeypatch, capsys) -> None:
    from mmengine.config import config as module

    def stop(*args, **kwargs) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr('yapf.yapflib.yapf_api.FormatCode', stop)
    monkeypatch.setattr(module, 'FormatCode', stop, raising=False)  # mmengine 0.10 has imported it already
    assert run_tool(lambda args, setup_is_over: Config(dict(a=1)).pretty_text, argparse.Namespace(**ARGS)) == 130
    assert capsys.readouterr().err == 'interrupted\n'


CUTMIX = dict(type='mmssl.CutMix', area_range=(0.2, 0.3))
LOCATED = [
    ('mmssl.CutMix: `area_range` must be two numbers, got (2, 1)', ['model.mix.area_range']),
    ('mmssl.FPLLoss: `cum_prob` must be in (0, 1], got 3', ['model.loss.losses.1.cum_prob']),
    # Of a class that is not in the config, or where the argument is not.
    ('mmssl.FPLLoss: `max_k` must be an integer, got 0', []),
    ('mmssl.ADRLoss: `topk` must be >= 1, got 0', []),
    ('mmssl.MultiBranch: the pipeline is empty', []),
]


@pytest.mark.parametrize(('message', 'keys'), LOCATED)
def test_wrong_value_in_a_nested_node_names_its_key(message: str, keys: list[str]) -> None:
    mixed = dict(type='mmssl.CutMix', area_range=(2, 1), prob=0.5)
    losses = [dict(type='mmssl.FPLLoss', cum_prob=0.9), dict(type='mmssl.FPLLoss', cum_prob=3)]
    cfg = Config(dict(model=dict(mix=mixed, second=CUTMIX, loss=dict(type='mmssl.CombinedLoss', losses=losses))))
    assert locate(message, cfg) == (f'{", ".join(keys)}: {message}' if keys else message)
    assert locate(message, None) == message


@pytest.mark.parametrize('groups', [1, 2])
def test_an_optimizer_that_does_not_fit_names_its_key(groups: int) -> None:
    first, second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2, bias=False)
    written = torch.optim.SGD(first.parameters(), lr=0.1).state_dict()
    other = torch.optim.SGD([dict(params=second.parameters())] * (groups == 1) + [
        dict(params=[part]) for part in first.parameters()] * (groups == 2), lr=0.1)  # yapf: disable
    with pytest.raises(ValueError) as caught:
        other.load_state_dict(written)
    for cfg in (None, Config()):
        assert locate(str(caught.value), cfg).startswith('--resume: optim_wrapper.paramwise_cfg, or which layers')


def test_chain_of_an_error() -> None:
    first, second, third = ValueError(), KeyError(), SyntaxError()
    first.__context__, second.__context__ = second, first  # a circle ends
    assert not comes_of_interrupt(first)
    third.__cause__, second.__cause__ = first, KeyboardInterrupt()
    assert comes_of_interrupt(third)


def test_other_errors_are_raised_after_set_up() -> None:
    def tool(args: argparse.Namespace, setup_is_over) -> None:
        setup_is_over()
        raise SyntaxError('of the user')

    with pytest.raises(SyntaxError, match='of the user'):
        run_tool(tool, argparse.Namespace(**ARGS))


def test_several_errors_are_one_on_each_line(capsys) -> None:
    report = Report()
    report.error('train_dataloader.batch_size', 'is 7')
    report.error('train_cfg.max_iters', 'is\n 0')
    assert run_tool(lambda *_: report.raise_errors(), argparse.Namespace(**ARGS)) == 2
    first, *rest = capsys.readouterr().err.splitlines()
    assert first.endswith('error: 2 errors in the config:')
    assert rest == ['  - train_dataloader.batch_size: is 7', '  - train_cfg.max_iters: is 0', '(--debug shows where)']
