"""tools/analysis/plot_adr.py: the curves are those of the loss, the picture is written, errors name the option."""

import argparse
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch
from PIL import Image

from mmssl.functional.adr_fused import adr_loss


@pytest.fixture(scope='module')
def tool(repo_root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location('plot_adr', repo_root / 'tools/analysis/plot_adr.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize('options', [dict(uncertainty='entropy', norm=2), dict(uncertainty='variance', norm=1)])
def test_curves_are_those_of_the_loss(tool: ModuleType, options: dict) -> None:
    args = argparse.Namespace(num_classes=6, gamma=0.5, **options)
    p, penalty, slope = tool.curve(args, 2, None)
    index = torch.tensor([100, 900, 1500])
    p, penalty, slope = p[index], penalty[index], slope[index]
    logits = torch.zeros(3, 6, dtype=torch.float64)
    logits[:, 0] = (5 * p / (1 - p)).log()
    logits.requires_grad_()
    loss = adr_loss(logits, topk=2, phi='sample', reduction='sum', loss_scale=0.5, **options).loss
    assert torch.allclose(loss, penalty.sum())
    assert torch.allclose(torch.autograd.grad(loss, logits)[0][:, 0], slope)


def test_writes_a_picture(tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / 'adr.png'
    assert tool.main(['--topk', '1', '3', '--num-classes', '10', '--out', str(out)]) == 0
    with Image.open(out) as picture:
        assert picture.size[1] > 500 and len(set(picture.convert('L').getdata())) > 20
    text = capsys.readouterr().out
    assert 'topk=1: largest at p = 0.100: 0.397' in text and 'topk=3: largest at p = 0.836: 0.1128;' in text
    command = ['--topk', '3', '--num-classes', '10', '--phi', '0.1', '0.5', '--gamma', '0.05', '--log']
    assert tool.main([*command, '--out', str(out)]) == 0
    assert 'topk=3, phi=0.5: largest at p = 0.100' in capsys.readouterr().out


@pytest.mark.parametrize(('options', 'message'), [
    (['--topk', '11'], '--topk: must be in [1, 10]'), (['--topk', '1', '--phi', '0'], '--phi: must be in (0, 1]'),
    (['--topk', '1', '--gamma', 'nan'], '--gamma: must be > 0'),
    (['--topk', '1', '--out', 'no/a.png'], '--out: no folder')])
def test_errors(tool: ModuleType, options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main(['--num-classes', '10', '--out', 'a.png', *options]) == 2
    assert message in capsys.readouterr().err
