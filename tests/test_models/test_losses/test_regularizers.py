"""EntropyLoss, OnlineLabelSmoothLoss and CombinedLoss: vectors, formulas, states, and heads that call them."""

import json
import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from mmengine.logging import MessageHub
from torch import nn

from mmssl.functional.adr import adr_penalty
from mmssl.functional.online_label_smoothing import class_sums, next_targets
from mmssl.models.losses import ADRLoss, CombinedLoss, EntropyLoss, OnlineLabelSmoothLoss

FOLDER = Path(__file__).resolve().parents[2]
VECTORS = json.loads((FOLDER / 'test_functional' / 'adr_vectors.json').read_text(encoding='utf-8'))
LOGITS = torch.tensor(VECTORS['adr'][0]['logits'], dtype=torch.float64)
EXPECTED = {key: torch.tensor(value) for key, value in VECTORS['regularizers'].items()}
LABELS = EXPECTED['labels']


def random_logits(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()


def ols(**kwargs):
    return OnlineLabelSmoothLoss(**{'num_classes': 5, 'updates': 'manual', **kwargs})


class CrossEntropy(nn.Module):
    """With the interface of mmpretrain's, and with the means of this test's checks."""

    def __init__(self, loss_weight=1.):
        super().__init__()
        self.loss_weight = loss_weight

    def forward(self, cls_score, label, weight=None, avg_factor=None, reduction_override=None):
        loss = F.cross_entropy(cls_score, label, reduction='none')
        return self.loss_weight * loss.sum() / (avg_factor or len(loss))


def test_entropy_vector():
    loss = EntropyLoss(loss_weight=1)
    assert torch.allclose(loss(LOGITS, reduction_override='none'), EXPECTED['entropy'].double())
    assert torch.allclose(loss(LOGITS, LABELS), EXPECTED['entropy'].double().mean())
    assert loss.statistics['entropy'].item() == pytest.approx(EXPECTED['entropy'].mean().item())
    assert torch.allclose(EntropyLoss(loss_weight=0.5)(LOGITS, avg_factor=2), EXPECTED['entropy'].double().sum() / 4)


def test_cross_entropy_and_label_smoothing_vectors():
    """OLS is both: with S one-hot or equal its soft term is cross entropy, or that with equal targets."""
    hard = ols(alpha=1.)
    assert torch.allclose(hard(LOGITS, LABELS, reduction_override='none'), EXPECTED['ce'].double())
    smooth = ols(alpha=0.9)  # in the first epoch, 0.9 one-hot + 0.1 / c
    assert torch.allclose(smooth(LOGITS, LABELS, reduction_override='none'), EXPECTED['label_smoothing'].double())
    hard.targets.copy_(torch.eye(5))
    hard.alpha = 0.3
    assert torch.allclose(hard(LOGITS, LABELS), EXPECTED['ce'].double().mean())
    pretrain = pytest.importorskip('mmpretrain.models.losses')
    loss = pretrain.LabelSmoothLoss(0.1, num_classes=5)(LOGITS, LABELS, reduction_override='none')
    assert torch.allclose(loss, EXPECTED['label_smoothing'].double())


@pytest.mark.parametrize('make', [lambda: EntropyLoss(loss_weight=1), lambda: ols()])
def test_gradient_ignored_pixels_and_extreme_logits(make):
    z, label = random_logits(2, 5, 6), torch.randint(0, 5, (2, 6))
    assert torch.autograd.gradcheck(lambda x: make()(x, label), (z, ))
    label[:, :2] = 255
    valid = label != 255
    loss, compact = make(), z.detach().transpose(1, 2)[valid].requires_grad_()
    expected = loss(compact, label[valid])
    with torch.no_grad():
        z[~valid.unsqueeze(1).expand_as(z)] = torch.nan
    actual = make()(z, label, ignore_index=255)
    assert torch.allclose(actual, expected)
    gradient, = torch.autograd.grad(actual, z)
    assert torch.allclose(gradient.transpose(1, 2)[valid], torch.autograd.grad(expected, compact)[0])
    nothing = make()(z, torch.full_like(label, 255), ignore_index=255)
    assert nothing.item() == 0 and (torch.autograd.grad(nothing, z)[0] == 0).all()
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        levels = torch.tensor([torch.finfo(dtype).max, -torch.finfo(dtype).max, 0, 5], dtype=dtype)
        x = levels[torch.randint(0, 4, (200, 5))].requires_grad_()
        loss = make()(x, torch.randint(0, 5, (200, )))
        assert loss.isfinite() and loss.dtype == torch.float32 and torch.autograd.grad(loss, x)[0].isfinite().all()


def test_online_label_smoothing_is_its_definition():
    """Two epochs, against loops."""
    loss = ols(alpha=0.4)
    matrix = torch.full((5, 5), 0.2, dtype=torch.float64)
    for epoch in range(3):
        rows = {c: [] for c in range(5)}
        for step in range(4):
            generator = torch.Generator().manual_seed(10 * epoch + step)
            z = torch.randn(12, 5, generator=generator, dtype=torch.float64).requires_grad_()
            label = torch.randint(0, 4, (12, ), generator=generator)  # class 4 never occurs
            expected = 0.
            for scores, y in zip(z.softmax(1), label.tolist(), strict=True):
                expected += -(0.4 * scores[y].log() + 0.6 * (matrix[y] * scores.log()).sum()) / 12
                if scores.argmax() == y:
                    rows[y].append(scores.detach())
            assert torch.allclose(loss(z, label).double(), expected)
        loss.update_targets()
        for c, seen in rows.items():
            matrix[c] = torch.stack(seen).mean(0) if seen else 0.2
        assert torch.allclose(loss.targets.double(), matrix, atol=1e-6)
        matrix = loss.targets.double()
        assert (loss.sums == 0).all() and torch.allclose(loss.targets.sum(1), torch.ones(5))
    assert (loss.targets[4] == 0.2).all() and loss.targets[0, 0] > 0.3


def test_maps_are_their_pixels():
    z, label = random_logits(2, 5, 6, 3), torch.randint(0, 5, (2, 6, 3))
    maps, rows = ols(), ols()
    flat = z.movedim(1, -1).reshape(-1, 5)
    for _ in range(2):
        assert torch.allclose(maps(z, label), rows(flat, label.flatten()))
        assert torch.allclose(maps.sums, rows.sums) and maps.sums[:, -1].sum() > 0
        maps.update_targets()
        rows.update_targets()


def test_first_epoch_without_a_soft_term_and_frozen_rows():
    loss = ols(first_epoch='none')
    assert torch.allclose(loss(LOGITS, LABELS), 0.5 * EXPECTED['ce'].double().mean())
    sums = torch.zeros(3, 4, dtype=torch.float64)
    sums[0] = torch.tensor([3., 1, 0, 4])
    sums[1] = torch.tensor([1., 9, 0, 10])
    targets = torch.tensor([[0.9, 0.1, 0], [0.1, 0.8, 0.1], [0, 0, 1]])
    new = next_targets(sums, targets)
    assert torch.allclose(new, torch.tensor([[0.75, 0.25, 0], [0.1, 0.9, 0], [1 / 3, 1 / 3, 1 / 3]]))
    frozen = next_targets(sums, targets, freeze_at=0.88)
    assert torch.equal(frozen[[0, 2]], targets[[0, 2]]) and torch.equal(frozen[1], new[1])


def test_only_training_steps_count():
    z, label = random_logits(20, 5), torch.randint(0, 5, (20, ))
    loss = ols()
    with torch.no_grad():
        loss(z, label)
    loss.eval()(z, label)
    assert (loss.sums == 0).all()
    loss.train()(z, label)
    assert torch.equal(loss.sums, class_sums(z.detach(), label)) and loss.sums[:, -1].sum() > 0
    state = loss.state_dict()
    assert set(state) == {'targets', 'sums'}
    other = ols()
    other.load_state_dict(state)
    loss.update_targets()
    other.update_targets()
    assert torch.equal(loss.targets, other.targets)


def test_without_its_hook_it_stops():
    loss = OnlineLabelSmoothLoss(num_classes=5)
    loss.eval()(LOGITS, LABELS)
    loss.train()
    with pytest.raises(RuntimeError, match=r'mmssl\.OnlineLabelSmoothHook'):
        loss(LOGITS.clone().requires_grad_(), LABELS)


def test_soft_targets_and_other_numbers_of_classes_are_refused():
    with pytest.raises(ValueError, match='mixup'):
        ols()(LOGITS, torch.full((3, 5), 0.2))
    with pytest.raises(ValueError, match=r'`num_classes` is 4.*\(3, 5\)'):
        ols(num_classes=4)(LOGITS, LABELS)


def losses(**kwargs):
    return CombinedLoss([CrossEntropy(), ADRLoss(loss_weight=0.5), EntropyLoss(loss_weight=0.1)], **kwargs)


@pytest.fixture
def hub():
    before = dict(MessageHub._instance_dict)
    yield MessageHub.get_instance('combined')
    MessageHub._instance_dict.clear()
    MessageHub._instance_dict.update(before)


@pytest.mark.parametrize('label', [LABELS, F.one_hot(LABELS, 5) * 0.8 + 0.04])
def test_combined_is_the_sum_and_logs_its_parts(label, hub):
    loss = losses()
    z = LOGITS.clone().requires_grad_()
    expected = dict(cross_entropy=F.cross_entropy(LOGITS, label), adr=0.5 * adr_penalty(LOGITS).mean(),
                    entropy=0.1 * EXPECTED['entropy'].double().mean())
    value = loss(z, label, avg_factor=3)
    assert torch.allclose(value, sum(expected.values())) and 'loss' in loss.loss_name
    for name, part in expected.items():
        assert torch.allclose(loss.statistics[f'part_{name}'], part)
        assert hub.get_scalar(f'train/part_{name}').current() == pytest.approx(part.item())
    count = len(hub.get_scalar('train/part_adr').data[0])
    loss.eval()(z, label)
    losses(log_parts=False)(z, label)
    assert len(hub.get_scalar('train/part_adr').data[0]) == count


def test_parts_for_heads_that_take_a_dictionary():
    parts = losses(output='parts')(LOGITS, LABELS)
    assert list(parts) == ['loss_cross_entropy', 'loss_adr', 'loss_entropy']
    assert torch.allclose(sum(parts.values()), losses()(LOGITS, LABELS))
    two = CombinedLoss([ADRLoss(), ADRLoss(topk=1), CrossEntropy(), ADRLoss(loss_name='loss_third')])
    assert two.names == ['adr', 'adr2', 'cross_entropy', 'third']


def test_margins():
    loss = CombinedLoss([CrossEntropy(), ADRLoss(loss_weight=1, margin_logits=False)])
    assert losses().margin_logits and not loss.margin_logits
    free = random_logits(3, 5)
    value = loss(LOGITS, LABELS, margin_free_logits=free)
    assert torch.allclose(value, F.cross_entropy(LOGITS, LABELS) + adr_penalty(free).mean())


@pytest.mark.parametrize(('make', 'kwargs'), [
    *[(EntropyLoss, kwargs) for kwargs in (dict(margin_logits=1), dict(loss_weight='1'), dict(reduction='avg'))],
    *[(ols, kwargs) for kwargs in (dict(num_classes=1), dict(num_classes=2.), dict(alpha=1.1), dict(alpha='0.5'),
                                   dict(first_epoch='zero'), dict(freeze_at=0), dict(updates='epoch'))],
    *[(losses, kwargs) for kwargs in (dict(output='list'), dict(log_parts=1))],
    *[(CombinedLoss, kwargs) for kwargs in (dict(losses=[]), dict(losses=dict(type='X')), dict(losses='X'))]])
def test_bad_arguments(make, kwargs):
    (key, value), = kwargs.items()
    with pytest.raises(ValueError, match=rf'mmssl\.\w+: `{key}` must be .*, got {re.escape(repr(value))}'):
        make(**kwargs)


class ActionHead(nn.Module):
    """A stand-in with the interface of mmaction2's heads: how they make labels, and what they do with a loss."""

    def __init__(self, loss_cls):
        super().__init__()
        self.loss_cls = loss_cls

    def loss_by_feat(self, cls_scores, labels):
        result = {}
        loss_cls = self.loss_cls(cls_scores, labels)
        result.update(loss_cls if isinstance(loss_cls, dict) else {'loss_cls': loss_cls})
        return result


@pytest.mark.parametrize('output', ['sum', 'parts'])
def test_in_a_head_like_those_of_mmaction2(output):
    z = LOGITS.clone().requires_grad_()
    result = ActionHead(losses(output=output)).loss_by_feat(z, LABELS)
    assert list(result) == (['loss_cls'] if output == 'sum' else ['loss_cross_entropy', 'loss_adr', 'loss_entropy'])
    total = sum(result.values())
    assert torch.allclose(total, losses()(LOGITS, LABELS))
    assert torch.autograd.grad(total, z)[0].abs().sum() > 0
    smoothed = F.one_hot(LABELS, 5) * 0.9 + 0.02  # with `label_smooth_eps`
    assert sum(ActionHead(losses(output=output)).loss_by_feat(z, smoothed).values()).isfinite()
