"""ADRLoss as heads call it, what it says of its penalty, and its errors."""

import logging
import math
import re

import pytest
import torch
from mmengine.registry import MODELS as ROOT_MODELS

from mmssl.functional.adr import adr_penalty
from mmssl.models.losses import ADRLoss
from mmssl.models.losses import adr_loss as module
from mmssl.models.losses.adr_loss import describe_penalty


@pytest.fixture
def messages(monkeypatch):
    seen = []
    monkeypatch.setattr(module, 'print_log', lambda text, logger, level: seen.append((level, text)))
    return seen


def random_logits(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()


def test_builds_from_a_config():
    loss = ROOT_MODELS.build(dict(type='mmssl.ADRLoss', topk=2, loss_weight=0.5, loss_name='loss_x'))
    assert loss.loss_name == 'loss_x' and 'topk=2' in repr(loss) and not loss.state_dict()
    assert ADRLoss().loss_name == 'loss_adr'


def test_as_mmseg_calls_it():
    z, label = random_logits(2, 4, 5, 3), torch.randint(0, 4, (2, 5, 3))
    label[0, :3] = 255
    valid = label != 255
    loss = ADRLoss(loss_weight=0.5)
    value = loss(z, label, weight=None, ignore_index=255)
    assert torch.allclose(value, 0.5 * adr_penalty(z, valid=valid)[valid].mean())
    assert loss.statistics['phi'].dim() == 0 and not loss.statistics['phi'].requires_grad
    assert (torch.autograd.grad(value, z)[0].transpose(1, 3)[~valid.transpose(1, 2)] == 0).all()
    weight = torch.rand(2, 5, 3)
    value = loss(z, label, weight=weight, ignore_index=255)
    assert torch.allclose(value, 0.5 * (adr_penalty(z, valid=valid) * weight)[valid].mean())
    label.fill_(255)
    assert loss(z, label, ignore_index=255).item() == 0


@pytest.mark.parametrize('label', [torch.tensor([0, 2, 3]), torch.tensor([[0.3, 0.7, 0, 0]] * 3), None])
def test_as_mmpretrain_calls_it(label):
    z = random_logits(3, 4)
    loss = ADRLoss(phi='sample', loss_weight=1)
    assert torch.allclose(loss(z, label, avg_factor=6), adr_penalty(z, phi='sample').sum() / 6)
    assert torch.allclose(loss(z, label, reduction_override='none'), adr_penalty(z, phi='sample'))
    assert torch.allclose(loss(z, label, anything=3), adr_penalty(z, phi='sample').mean())
    assert loss.statistics['phi'].dim() == 0


def test_weight_and_avg_factor():
    z, weight = random_logits(3, 4), torch.tensor([0., 1, 2])
    assert torch.allclose(ADRLoss(loss_weight=2)(z, weight=weight, avg_factor=2.), (adr_penalty(z) * weight).sum())
    with pytest.raises(ValueError, match='`avg_factor`'):
        ADRLoss(reduction='sum')(z, avg_factor=2.)


@pytest.mark.parametrize(('classes', 'topk'), [(2, 1), (10, 1), (21, 2), (60, 6), (1000, 10)])
def test_topk_of_the_number_of_classes(classes, topk):
    z = random_logits(3, classes)
    assert torch.allclose(ADRLoss(topk=None)(z), ADRLoss(topk=topk)(z))


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_computes_in_float32_under_autocast(dtype):
    z = random_logits(4, 6).detach().to(dtype).requires_grad_()
    with torch.autocast('cpu', dtype=torch.bfloat16):
        loss = ADRLoss()(z)
    assert loss.dtype == torch.float32 and torch.autograd.grad(loss, z)[0].dtype == dtype
    assert torch.allclose(loss, ADRLoss()(z.float()))


def test_multi_label_targets_are_refused():
    z = random_logits(3, 4)
    with pytest.raises(ValueError, match=r'mmssl\.ADRLoss is a loss on a softmax.*found 2'):
        ADRLoss()(z, torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 1]]))


def test_says_once_where_the_penalty_turns_around(messages):
    loss = ADRLoss(topk=3)
    for _ in range(2):
        loss(random_logits(3, 10))
    (level, text), = messages
    assert level == logging.INFO and text.startswith('mmssl.ADRLoss: with topk=3 and 10 classes')
    assert 'probability 0.84' in text and 'T / topk, at most 0.333' in text and '0.0625 for equal' in text
    assert "phi='batch'" in text and 'exp(2.65)' in text
    ADRLoss(topk=20)(random_logits(3, 100))
    level, text = messages[-1]
    assert level == logging.WARNING and 'exp(1.58) at phi = 0.05' in text and 'max_log_penalty=50' in text


def test_says_nothing_where_nothing_happens(messages):
    loss = ADRLoss(topk=1, phi='sample')
    loss(random_logits(3, 10))
    assert not messages and describe_penalty(1, 10, 'entropy', 'sample', 2, 50.) == ([], logging.INFO)


def test_the_numbers_that_it_says_are_those_of_the_penalty():
    """The value at the peak and at equal probabilities, found again in the sentences."""
    lines, _ = describe_penalty(3, 10, 'entropy', 'batch', 2, 50.)
    best = float(re.search(r'probability ([\d.]+)', lines[0]).group(1))
    probs = torch.full((1, 10), (1 - best) / 9, dtype=torch.float64)
    probs[0, 0] = best
    assert f'largest, {adr_penalty(probs.log(), 3, phi="sample").item():.3g}' in lines[0]
    # One unsure sample among many sure ones comes near the bound.
    z = torch.zeros(160, 10, dtype=torch.float64)
    z[1:, 0] = 40
    assert math.log(adr_penalty(z, 3).max()) <= float(re.search(r'exp\(([\d.]+)\)', lines[1]).group(1)) + 0.01
    z = z[:100]
    assert math.log(adr_penalty(z, 3).max()) == pytest.approx(2.65, abs=0.01)


@pytest.mark.parametrize('kwargs', [
    dict(topk=0), dict(topk=2.5), dict(topk=True), dict(topk='3'), dict(uncertainty='gini'), dict(phi='class'),
    dict(norm=3), dict(norm=2.), dict(norm='2'), dict(max_log_penalty=51), dict(max_log_penalty=math.nan),
    dict(max_log_penalty=None), dict(detach_phi=1), dict(margin_logits=None), dict(loss_weight=math.inf),
    dict(reduction='avg')])
def test_bad_arguments(kwargs):
    (key, value), = kwargs.items()
    with pytest.raises(ValueError, match=rf'mmssl\.ADRLoss: `{key}` must be .*, got {re.escape(repr(value))}'):
        ADRLoss(**kwargs)


@pytest.mark.parametrize(('call', 'message'), [
    (dict(logits=torch.zeros(3, 2)), '`topk` must be at most the number of classes, 2, got 3'),
    (dict(logits=torch.zeros(3, 4), label=torch.zeros(4).long()), r'`label` must be class indices \(3,\)'),
    (dict(logits=torch.zeros(3, 4), weight=torch.zeros(4)), '`weight`'),
    (dict(logits=torch.zeros(3, 1)), 'at least 2 classes'), (dict(logits=torch.zeros(3, 4).long()), 'floating point'),
    (dict(logits=torch.zeros(3, 4), reduction_override='max'), '`reduction_override`')])
def test_bad_calls(call, message):
    with pytest.raises(ValueError, match=rf'mmssl\.ADRLoss: .*{message}'):
        ADRLoss()(**call)


def test_without_margin_needs_a_head_that_has_such_logits():
    z, free = random_logits(3, 4), random_logits(3, 4)
    with pytest.raises(ValueError, match=r'margin_logits=False.*mmssl\.ArcFaceClsHead'):
        ADRLoss(margin_logits=False)(z)
    assert torch.allclose(ADRLoss(margin_logits=False)(z, margin_free_logits=free), ADRLoss()(free))
    assert torch.allclose(ADRLoss()(z, margin_free_logits=2 * free), ADRLoss()(z))
