"""Objectives of partial-label classifiers: against a plain second implementation over steps, and at the edges."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from mmssl.models.partial_label import (
    CAVLLoss,
    CCLoss,
    LWSLoss,
    PartialLabelBatch,
    PRODENLoss,
    SampleTargets,
)
from mmssl.registry import MODELS

N, C, B = 7, 4, 3
SETS = torch.tensor([[1, 1, 0, 1], [0, 1, 0, 0], [1, 1, 1, 1], [0, 0, 1, 1], [1, 0, 0, 1], [1, 1, 1, 0], [0, 1, 1, 0]],
                    dtype=torch.bool)
ORDER = [[0, 1, 2], [3, 4, 5], [6, 0, 2], [5, 1, 0], [2, 3, 6]]


def sized(objective: torch.nn.Module, length: int = N) -> torch.nn.Module:
    if objective.targets is not None:
        objective.double().targets.set_samples(length, b'digest', 'some.txt')
    return objective


def restricted(p: list[float], mask: list[bool]) -> list[float]:
    total = sum(x for x, inside in zip(p, mask, strict=True) if inside)
    return [x / total if inside else 0.0 for x, inside in zip(p, mask, strict=True)]


def uniform(mask: list[bool]) -> list[float]:
    return [1 / sum(mask) if inside else 0.0 for inside in mask]


class Plain:
    """Each method once more, one sample and one class at a time."""

    def __init__(self, name: str, **options: float | str) -> None:
        self.name, self.options, self.table = name, options, {}

    def loss(self, ids: list[int], z: Tensor, teacher: Tensor | None) -> Tensor:
        losses, new = [], {}
        for row, i in enumerate(ids):
            mask, p = SETS[i].tolist(), z[row].softmax(0)
            target = self.table.get(i)
            now = p.tolist()
            if self.name == 'cc':
                losses.append(-torch.log(sum(p[c] for c in range(C) if mask[c])))
            elif self.name in ('proden', 'cavl'):
                target = target or uniform(mask)
                losses.append(sum(-target[c] * torch.log(p[c]) for c in range(C)))
                if self.name == 'proden':
                    new[i] = restricted(now if teacher is None else teacher[row].softmax(0).tolist(), mask)
                else:
                    values = [abs(x - 1) * x if m else -math.inf for x, m in zip(z[row].tolist(), mask, strict=True)]
                    new[i] = [float(c == values.index(max(values))) for c in range(C)]
            else:
                w = target or [1 / C] * C
                beta = self.options['beta']
                total = 0
                for c in range(C):
                    if self.options['kind'] == 'sigmoid':
                        inside, outside = 1 / (1 + z[row, c].exp()), 1 / (1 + (-z[row, c]).exp())
                    else:
                        inside, outside = -torch.log(p[c]), -torch.log(1 - p[c])
                    total = total + w[c] * (inside if mask[c] else beta * outside)
                losses.append(total)
                outside = restricted(now, [not m for m in mask]) if not all(mask) else [0.0] * C
                new[i] = [a + b for a, b in zip(restricted(now, mask), outside, strict=True)]
        self.table.update(new)
        return torch.stack(losses).mean()


CASES = {
    'cc': (lambda: CCLoss(C), {}, False),
    'proden': (lambda: PRODENLoss(C), {}, False),
    'proden_teacher': (lambda: PRODENLoss(C), {}, True),
    'cavl': (lambda: CAVLLoss(C), {}, False),
    'lws': (lambda: LWSLoss(C, beta=2.0), dict(beta=2.0, kind='sigmoid'), False),
    'lws_cross_entropy': (lambda: LWSLoss(C, beta=0.5, kind='cross_entropy'), dict(beta=0.5, kind='cross_entropy'),
                          False),
}  # fmt: skip


@pytest.mark.parametrize('name', CASES)
def test_against_a_plain_implementation_over_several_steps(name: str) -> None:
    """A linear model that learns: losses, gradients and targets of every step, the old targets in the loss."""
    make, options, with_teacher = CASES[name]
    objective, plain = sized(make()), Plain(name.split('_')[0], **options)
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(N, 5, generator=generator, dtype=torch.float64)
    weight = torch.randn(5, C, generator=generator, dtype=torch.float64)
    teacher = torch.randn(5, C, generator=generator, dtype=torch.float64)
    for ids in ORDER:
        own, other = weight.clone().requires_grad_(), weight.clone().requires_grad_()
        x, sets = images[ids], SETS[ids]
        guide = x @ teacher if with_teacher else None
        losses, targets = objective(PartialLabelBatch(sets, dict(unsup_weak=x @ own), torch.tensor(ids),
                                                      teacher_logits=guide))
        assert list(losses) == ['prediction_loss']
        wanted = plain.loss(ids, x @ other, guide)
        torch.testing.assert_close(losses['prediction_loss'], wanted)
        gradient, = torch.autograd.grad(losses['prediction_loss'], own)
        torch.testing.assert_close(gradient, torch.autograd.grad(wanted, other)[0])
        torch.testing.assert_close(targets.sum(1), torch.ones(B, dtype=torch.float64))
        assert not targets.requires_grad and (targets[~sets] == 0).all()
        if objective.targets is not None:
            for i, row in plain.table.items():
                torch.testing.assert_close(objective.targets.values[i], torch.tensor(row, dtype=torch.float64))
            unseen = [i for i in range(N) if i not in plain.table]
            assert (objective.targets.values[unseen] == 0).all()
        weight -= 0.5 * gradient


@pytest.mark.parametrize('name', CASES)
def test_edges(name: str) -> None:
    """One candidate, all of them, two classes, large logits, a batch of one: finite, and with a gradient."""
    make, _, _ = CASES[name]
    kind = type(make())
    for classes, sets in ((2, [[1, 1], [1, 0]]), (4, [[1, 1, 1, 1], [0, 0, 1, 0]]), (3, [[0, 1, 1]])):
        objective = sized(kind(classes)).float()
        for scale in (1.0, 1e4, 1e30):
            mask = torch.tensor(sets, dtype=torch.bool)
            z = (scale * torch.linspace(-1, 1, classes).repeat(len(sets), 1)).requires_grad_()
            losses, targets = objective(PartialLabelBatch(mask, dict(unsup_weak=z), torch.arange(len(sets))))
            gradient, = torch.autograd.grad(losses['prediction_loss'], z)
            assert torch.isfinite(losses['prediction_loss']) and torch.isfinite(gradient).all()
            assert (targets[~mask] == 0).all()
            torch.testing.assert_close(targets.sum(1), torch.ones(len(sets)))


def test_all_candidates_cost_nothing_in_cc() -> None:
    z = torch.randn(2, C, requires_grad=True)
    losses, _ = CCLoss(C)(PartialLabelBatch(torch.ones(2, C, dtype=torch.bool), dict(unsup_weak=z)))
    assert losses['prediction_loss'] == 0
    assert torch.autograd.grad(losses['prediction_loss'], z)[0].abs().max() < 1e-6


def test_negative_logits_without_bound_keep_cavl_inside_the_set() -> None:
    z = torch.tensor([[0.0, -1e30, -2e30]])
    _, targets = sized(CAVLLoss(3)).float()(
        PartialLabelBatch(torch.tensor([[False, True, True]]), dict(unsup_weak=z), torch.tensor([0])))
    assert targets.tolist() == [[0, 1, 0]]


def test_a_sample_twice_in_a_batch_keeps_the_later_targets() -> None:
    objective = sized(PRODENLoss(C))
    z = torch.randn(4, C, dtype=torch.float64)
    ids = torch.tensor([2, 5, 2, 5])
    objective(PartialLabelBatch(SETS[ids], dict(unsup_weak=z), ids))
    for row, i in ((2, 2), (3, 5)):
        torch.testing.assert_close(objective.targets.values[i], z[row].masked_fill(~SETS[i], -math.inf).softmax(0))


def test_branch_and_registry() -> None:
    objective = MODELS.build(dict(type='mmssl.PRODENLoss', num_classes=C, branch='unsup_strong'))
    assert objective.branches == ('unsup_strong',)
    assert PRODENLoss.required_branches({}, False) == ('unsup_weak',)
    assert PRODENLoss.required_branches(dict(branch='unsup_strong'), False) == ('unsup_strong',)
    assert PRODENLoss.required_branches(dict(branch='unsup_strong'), True) == ('unsup_strong', 'unsup_weak')


@pytest.mark.parametrize(('build', 'message'), [
    (lambda: LWSLoss(C, beta=-1), r'mmssl.LWSLoss: `beta` must be a finite number >= 0, got -1'),
    (lambda: LWSLoss(C, kind='hinge'), '`kind` must be one of'),
    (lambda: CCLoss(1), '`num_classes` must be an integer >= 2, got 1'),
    (lambda: CCLoss(C, branch='sup'), 'must be the name of a view'),
    (lambda: PRODENLoss(C, branch=3), 'must be the name of a view'),
])  # fmt: skip
def test_wrong_options(build, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


# --- the table ---------------------------------------------------------------------------------------------------


def table(length: int = N, digest: bytes = b'one', origin: str = 'one.txt') -> SampleTargets:
    made = SampleTargets(C, 'candidates')
    made.set_samples(length, digest, origin)
    return made


def test_the_table_refuses_what_it_does_not_know() -> None:
    mask = SETS[:1]
    with pytest.raises(ValueError, match=r'add dict\(type=.mmssl.SampleTargetsHook'):
        SampleTargets(C, 'candidates').read(torch.tensor([0]), mask)
    with pytest.raises(ValueError, match='`sample_idx` must be in the meta_keys'):
        table().read(None, mask)
    for wrong in (-1, N):
        with pytest.raises(ValueError, match=f'a sample has the number {wrong}, but there are targets for 7'):
            table().read(torch.tensor([wrong]), mask)


def test_the_table_is_saved_and_loaded(tmp_path) -> None:
    first = table()
    first.write(torch.tensor([3]), F.one_hot(torch.tensor([2]), C).float())
    torch.save(first.state_dict(), tmp_path / 'table.pth')
    state = torch.load(tmp_path / 'table.pth', weights_only=True)
    moved = table(origin='moved/one.txt')
    moved.load_state_dict(state)
    moved.check_resumed()
    assert torch.equal(moved.values, first.values) and moved.described() == 'moved/one.txt'
    unsized = SampleTargets(C, 'candidates')
    unsized.load_state_dict(state)
    assert torch.equal(unsized.values, first.values) and unsized.described() == 'one.txt'


@pytest.mark.parametrize('other', [dict(digest=b'two'), dict(length=N + 1)])
def test_the_table_of_other_data_is_not_loaded(other: dict) -> None:
    first = table()
    first.write(torch.tensor([3]), F.one_hot(torch.tensor([2]), C).float())
    second = table(origin='two.txt', **{**dict(digest=b'one'), **other})
    second.load_state_dict(first.state_dict())
    assert (second.values == 0).all()
    with pytest.raises(ValueError, match=r'are those of one\.txt, but train_dataloader\.dataset has two\.txt'):
        second.check_resumed()


def test_a_checkpoint_without_targets_is_not_resumed() -> None:
    second = table()
    second.load_state_dict({}, strict=False)
    with pytest.raises(ValueError, match='holds no targets of samples'):
        second.check_resumed()
