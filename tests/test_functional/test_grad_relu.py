"""Grad-ReLU against vectors, and to the last bit against training without the other losses."""

import json
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmssl.functional.grad_relu import grad_relu, held_fixed

VECTORS = json.loads((Path(__file__).parent / 'layermatch_vectors.json').read_text())


def tensor(values: list) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def logits(features: Tensor, weights: Tensor) -> Tensor:
    return F.linear(features, weights[:, :-1], weights[:, -1])


def losses(main: Tensor, feat: Tensor, unsupervised_main: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    case = VECTORS['grad_relu']
    supervised = F.cross_entropy(logits(tensor(case['labeled']), main), torch.tensor(case['labels']))
    target, mask = torch.tensor(VECTORS['pseudo']), tensor(VECTORS['mask'])
    unsupervised = (F.cross_entropy(logits(feat, unsupervised_main), target, reduction='none') * mask).mean()
    average = (F.cross_entropy(logits(feat, main.detach().clone()), target, reduction='none') * mask).mean()
    return supervised, unsupervised, average


@pytest.mark.parametrize('way', ['held_fixed', 'grad_relu', 'neither'])
def test_vector(way: str) -> None:
    case = VECTORS['grad_relu']
    main, feat = tensor(VECTORS['main']).requires_grad_(), tensor(VECTORS['feat']).requires_grad_()
    if way == 'held_fixed':
        supervised = losses(main, feat, main)[0]
        with held_fixed([main]):
            _, unsupervised, average = losses(main, feat, main)
    elif way == 'grad_relu':
        copy = main.detach().requires_grad_()
        supervised, unsupervised, average = losses(copy, feat, copy)
        (supervised,) = grad_relu([supervised], [main], [copy])
    else:
        supervised, unsupervised, average = losses(main, feat, main)
    total = supervised + unsupervised + average
    total.backward()
    expected = tensor(case['main_grad_without' if way == 'neither' else 'main_grad'])
    torch.testing.assert_close(main.grad, expected, rtol=0, atol=1e-9)
    torch.testing.assert_close(feat.grad, tensor(case['feat_grad']), rtol=0, atol=1e-9)
    for value, name in ((supervised, 'supervised'), (unsupervised, 'unsupervised'), (total, 'total')):
        assert value.item() == pytest.approx(case[name], abs=1e-9)


def test_held_fixed_leaves_what_it_found() -> None:
    trained, frozen = torch.ones(2, requires_grad=True), torch.ones(2)
    before = (trained * 3).sum()
    with pytest.raises(RuntimeError, match='stop'), held_fixed([trained, frozen, trained]):
        assert not trained.requires_grad
        inside = (trained * 5).sum()
        raise RuntimeError('stop')
    assert trained.requires_grad and not frozen.requires_grad
    assert not inside.requires_grad
    before.backward()
    assert trained.grad.tolist() == [3, 3]


class Net(nn.Module):
    """Two layers that both losses go through, in float32, where every order of sums shows."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.head = nn.Linear(7, 33), nn.Linear(33, 5)

    def forward(self, x: Tensor, y: Tensor, head: tuple[Tensor, Tensor] | None = None) -> dict[str, Tensor]:
        weight, bias = (self.head.weight, self.head.bias) if head is None else head
        out = F.linear(self.body(x).tanh(), weight, bias)
        return dict(
            first=F.cross_entropy(out, y),
            second=F.cross_entropy(2 * out, y, reduction='none'),
            other=-(out.softmax(1) * out.log_softmax(1)).sum(1).mean(),
        )


def run(net: Net, scale: float, with_other: bool, relu: bool) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1)
    x, y = torch.randn(64, 7, generator=generator), torch.randint(0, 5, (64,), generator=generator)
    net.zero_grad()
    if relu:
        own = [net.head.weight, net.head.bias]
        copies = [parameter.detach().requires_grad_() for parameter in own]
        out = net(x, y, tuple(copies))
        out['first'], out['second'] = grad_relu([out['first'], out['second']], own, copies)
    else:
        out = net(x, y)
    total = out['first'] + 0.3 * out['second'].mean() + (out['other'] if with_other else 0)
    (total * scale).backward()
    return {name: parameter.grad.clone() for name, parameter in net.named_parameters()}


@pytest.mark.parametrize('scale', [1.0, 65536.0, 1 / 3])
def test_gradient_is_that_of_supervised_training_to_the_last_bit(scale: float) -> None:
    """Also with loss scaling and accumulation, which scale the total loss; and the features learn from all."""
    net = Net()
    alone, everything, ours = (run(net, scale, *options) for options in ((False, False), (True, False), (True, True)))
    for name in ('head.weight', 'head.bias'):
        assert torch.equal(ours[name], alone[name])
        assert not torch.equal(everything[name], alone[name])
    for name in ('body.weight', 'body.bias'):
        assert torch.equal(ours[name], everything[name])
        assert not torch.equal(ours[name], alone[name])


def test_each_backward_pass_delivers_its_own_share() -> None:
    """As gradient surgery differentiates: one group of losses after another, by autograd.grad."""
    net = Net()
    own = [net.head.weight, net.head.bias]
    x, y = torch.randn(8, 7), torch.randint(0, 5, (8,))
    plain = net(x, y)
    copies = [parameter.detach().requires_grad_() for parameter in own]
    out = net(x, y, tuple(copies))
    first, second = grad_relu([out['first'], out['second']], own, copies)
    parameters = list(net.parameters())
    for ours, reference in ((first + out['other'], plain['first']), (second.sum(), plain['second'].sum())):
        found = torch.autograd.grad(ours, parameters, retain_graph=True)
        expected = torch.autograd.grad(reference, own, retain_graph=True)
        assert all(torch.equal(a, b) for a, b in zip(found[2:], expected, strict=True))
    assert torch.autograd.grad(out['other'], own, allow_unused=True) == (None, None)


def test_a_parameter_that_no_supervised_loss_reaches_gets_no_gradient() -> None:
    reached, apart = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    copies = [reached.detach().requires_grad_(), apart.detach().requires_grad_()]
    (loss,) = grad_relu([(copies[0] ** 2).sum()], [reached, apart], copies)
    (loss + (copies[1] * 5).sum()).backward()
    assert reached.grad.tolist() == [2, 2, 2] and apart.grad is None
    assert grad_relu([], [reached], copies[:1]) == []
