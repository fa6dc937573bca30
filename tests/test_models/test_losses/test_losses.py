"""The registered losses: one contract for all, and what is special to each."""

import math
import re

import pytest
import torch
import torch.nn.functional as F
from mmengine.registry import MODELS as ROOT_MODELS

from mmssl.functional import fpl
from mmssl.models.losses import FPLLoss, HardPseudoLabelLoss, NegativeLearningLoss, SoftPseudoLabelLoss
from mmssl.registry import MODELS

ALL = [FPLLoss, HardPseudoLabelLoss, NegativeLearningLoss, SoftPseudoLabelLoss]
STATISTICS = {FPLLoss: {'mean_k', 'k1_ratio', 'pixel_weight', 'mask_ratio'}}


def pair(*shape, scale=2., dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    z = (torch.randn(*shape, generator=generator, dtype=torch.float64) * scale).to(dtype).requires_grad_()
    return z, (torch.randn(*shape, generator=generator, dtype=torch.float64) * scale).to(dtype)


@pytest.mark.parametrize('cls', ALL)
def test_builds_from_a_config(cls):
    for registry in (MODELS, ROOT_MODELS):
        assert type(registry.build(dict(type=f'mmssl.{cls.__name__}', loss_weight=0.5))) is cls
    assert 'loss' in cls().loss_name
    assert cls(loss_name='loss_x').loss_name == 'loss_x'
    assert not cls().state_dict()


@pytest.mark.parametrize('cls', ALL)
@pytest.mark.parametrize('shape', [(7, 5), (2, 5, 6), (2, 5, 4, 3), (1, 2, 1, 1)])
def test_shapes_reductions_and_weight(cls, shape):
    z, t = pair(*shape)
    weight = torch.rand(shape[0], *shape[2:], dtype=torch.float64)
    loss = cls()
    pixels = loss(z, t, reduction_override='none')
    assert pixels.shape == weight.shape
    assert torch.allclose(loss(z, t), pixels.mean())
    assert torch.allclose(cls(reduction='sum')(z, t), pixels.sum())
    assert torch.allclose(cls(loss_weight=3.)(z, t), 3 * pixels.mean())
    assert torch.allclose(loss(z, t, weight=weight), (pixels * weight).mean())
    assert torch.allclose(loss(z, t, weight=weight, avg_factor=5.), (pixels * weight).sum() / 5)
    assert torch.allclose(loss(z, t, avg_factor=torch.tensor(5)), pixels.sum() / 5)
    with pytest.raises(ValueError, match=rf'mmssl\.{cls.__name__}: `avg_factor`'):
        loss(z, t, avg_factor=5., reduction_override='sum')


@pytest.mark.parametrize('cls', ALL)
def test_valid_is_the_loss_of_the_valid_pixels(cls):
    z, t = pair(2, 5, 6, 4)
    valid = torch.rand(2, 6, 4, generator=torch.Generator().manual_seed(1)) > 0.5
    compact = [x.detach().transpose(0, 1)[:, valid].T for x in (z, t)]
    loss = cls()
    expected = loss(*compact)
    statistics = loss.statistics
    with torch.no_grad():
        z[~valid.unsqueeze(1).expand_as(z)] = math.nan
    actual = loss(z, t, valid=valid)
    assert torch.allclose(actual, expected)
    for key, value in statistics.items():
        if not (cls is FPLLoss and key == 'mask_ratio'):
            assert torch.allclose(loss.statistics[key], value), key
    gradient, = torch.autograd.grad(actual, z)
    assert gradient.isfinite().all()
    assert (gradient.transpose(0, 1)[:, ~valid] == 0).all()


@pytest.mark.parametrize('cls', ALL)
@pytest.mark.parametrize('shape', [(2, 5, 4), (0, 5, 4)])
def test_nothing_valid_is_an_attached_zero(cls, shape):
    z, t = pair(*shape)
    loss = cls()
    value = loss(z, t, valid=torch.zeros(shape[0], shape[2], dtype=torch.bool))
    assert value.item() == 0
    assert (torch.autograd.grad(value, z)[0] == 0).all()
    assert all(statistic.isfinite() for statistic in loss.statistics.values())


@pytest.mark.parametrize('cls', ALL)
def test_statistics_are_detached_scalars_whose_keys_are_not_summed(cls):
    z, t = pair(2, 5, 6)
    loss = cls()
    assert loss.statistics == {}
    loss(z, t)
    assert set(loss.statistics) == STATISTICS.get(cls, {'mask_ratio'})
    for key, value in loss.statistics.items():
        assert value.shape == ()
        assert not value.requires_grad
        assert 'loss' not in key


@pytest.mark.parametrize('cls', ALL)
def test_no_gradient_to_the_teacher(cls):
    z, t = pair(2, 5, 6)
    t.requires_grad_()
    cls()(z, t).backward()
    assert t.grad is None
    assert z.grad.abs().sum() > 0


@pytest.mark.parametrize('cls', ALL)
@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16, torch.float16])
def test_computes_in_float32_under_autocast(cls, dtype):
    z, t = pair(2, 5, 6, dtype=dtype)
    expected = cls()(z.float(), t.float())
    with torch.autocast('cpu', dtype=torch.bfloat16):
        loss = cls()(z, t)
    assert loss.dtype == torch.float32
    assert torch.allclose(loss, expected, rtol=1e-6)
    assert torch.autograd.grad(loss, z)[0].dtype == dtype


@pytest.mark.parametrize('cls', ALL)
@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize('num_classes', [2, 5])
def test_finite_for_every_finite_logit(cls, dtype, num_classes):
    largest = torch.finfo(dtype).max
    levels = torch.tensor([largest, -largest, 1e4, -1e4, 0.], dtype=dtype)
    choice = torch.randint(0, 5, (2, 400, num_classes), generator=torch.Generator().manual_seed(0))
    z, t = levels[choice[0]].requires_grad_(), levels[choice[1]]
    loss = cls()(z, t)
    assert loss.isfinite()
    assert torch.autograd.grad(loss, z)[0].isfinite().all()


@pytest.mark.parametrize('cls', ALL)
def test_gradcheck(cls):
    z, t = pair(2, 4, 3, scale=1.)
    assert torch.autograd.gradcheck(lambda x: cls()(x, t), (z,))


@pytest.mark.parametrize('cls', ALL)
@pytest.mark.parametrize(('shapes', 'kwargs', 'message'), [
    (((2, 1, 4), (2, 1, 4)), {}, 'at least 2 classes'), (((2, 3, 4), (2, 3, 5)), {}, '`target_logits`'),
    (((2, 3, 4), (2, 3, 4)), dict(valid=torch.ones(2, 3, 4, dtype=torch.bool)), '`valid`'),
    (((2, 3, 4), (2, 3, 4)), dict(weight=torch.ones(2)), '`weight`'),
    (((2, 3, 4), (2, 3, 4)), dict(reduction_override='max'), '`reduction_override`')])
def test_bad_input(cls, shapes, kwargs, message):
    with pytest.raises(ValueError, match=rf'mmssl\.{cls.__name__}: .*{message}'):
        cls()(torch.zeros(shapes[0]), torch.zeros(shapes[1]), **kwargs)


@pytest.mark.parametrize(('cls', 'kwargs'), [
    (FPLLoss, dict(cum_prob=0.)), (FPLLoss, dict(cum_prob=1.)), (FPLLoss, dict(max_k=0)), (FPLLoss, dict(max_k=2.5)),
    (FPLLoss, dict(k_rule='n+1')), (FPLLoss, dict(k_ratio=0.)), (FPLLoss, dict(k_ratio=1.1)),
    (FPLLoss, dict(weight_mode='cubic')), (FPLLoss, dict(weight_scale=0.)), (FPLLoss, dict(weight_scale=math.inf)),
    (FPLLoss, dict(weight_bound='max')), (FPLLoss, dict(balance='ce')), (FPLLoss, dict(balance=True)),
    (NegativeLearningLoss, dict(threshold=0.)), (NegativeLearningLoss, dict(threshold=1.5)),
    (HardPseudoLabelLoss, dict(threshold=-0.1)), (HardPseudoLabelLoss, dict(threshold=2.)),
    (FPLLoss, dict(cum_prob='0.9')), (FPLLoss, dict(cum_prob=None)), (FPLLoss, dict(max_k=True)),
    (FPLLoss, dict(max_k='3')), (FPLLoss, dict(k_ratio=[0.5])), (FPLLoss, dict(weight_scale='50')),
    (FPLLoss, dict(weight_mode=['concave'])), (NegativeLearningLoss, dict(threshold='0.2')),
    (HardPseudoLabelLoss, dict(threshold=None)),
    *[(cls, kwargs) for cls in ALL for kwargs in
      (dict(reduction='avg'), dict(reduction=None), dict(loss_weight=math.nan), dict(loss_weight='1'),
       dict(loss_weight=None))]])
def test_bad_arguments(cls, kwargs):
    (key, value), = kwargs.items()
    with pytest.raises(ValueError, match=rf'mmssl\.{cls.__name__}: `{key}` must be .*, got {re.escape(repr(value))}'):
        cls(**kwargs)


@pytest.mark.parametrize('kwargs', [{}, dict(max_k=3, weight_bound='top_k_plus_1', balance='ce_value'),
                                    dict(k_rule='ratio', k_ratio=0.7, weight_mode='linear', cum_prob=0.8)])
def test_fpl_is_its_equations(kwargs):
    z, t = pair(2, 6, 20)
    assign = {key: kwargs[key] for key in ('cum_prob', 'max_k', 'k_rule', 'k_ratio') if key in kwargs}
    fuzzy = fpl.fuzzy_positive_assignment(t, **assign)
    weight = fpl.fuzzy_positive_weight(fuzzy.positive_prob, fuzzy.negative_prob, fuzzy.k,
                                       kwargs.get('weight_mode', 'concave'), 50.,
                                       kwargs.get('weight_bound', 'positive_mean'))
    expected = (weight * fpl.fuzzy_positive_loss(z, fuzzy.positive)).mean()
    loss = FPLLoss(**kwargs)
    value = loss(z, t)
    if kwargs.get('balance'):
        assert torch.allclose(loss.statistics['balance'], F.cross_entropy(z, t.argmax(1)) / expected)
        expected = F.cross_entropy(z, t.argmax(1))
    assert torch.allclose(value, expected)
    assert loss.statistics['mean_k'].item() == pytest.approx(fuzzy.k.double().mean().item())
    assert loss.statistics['k1_ratio'].item() == pytest.approx((fuzzy.k == 1).double().mean().item())
    assert loss.statistics['pixel_weight'].item() == pytest.approx(weight.mean().item())
    assert loss.statistics['mask_ratio'] == 1


def test_fpl_coverage_is_the_share_of_valid_pixels():
    z, t = pair(1, 4, 8)
    loss = FPLLoss()
    loss(z, t, valid=torch.arange(8)[None] < 6)
    assert loss.statistics['mask_ratio'] == 0.75


def test_fpl_balance_keeps_its_value_under_loss_weight():
    z, t = pair(2, 6, 20)
    value = FPLLoss(balance='ce_value', loss_weight=1.5)(z, t)
    assert torch.allclose(value, 1.5 * F.cross_entropy(z, t.argmax(1)))


def test_fpl_repr_shows_the_hyper_parameters():
    assert 'cum_prob=0.85' in repr(FPLLoss(cum_prob=0.85))


def test_hard_threshold_leaves_unsure_pixels_out_but_in_the_denominator():
    z, t = pair(2, 5, 30)
    confidence, label = t.softmax(1).max(1)
    used = confidence >= 0.6
    loss = HardPseudoLabelLoss(threshold=0.6)
    value = loss(z, t)
    assert 0 < used.double().mean() < 1
    assert torch.allclose(value, (F.cross_entropy(z, label, reduction='none') * used).mean())
    assert loss.statistics['mask_ratio'].item() == pytest.approx(used.double().mean().item())
    assert torch.allclose(HardPseudoLabelLoss()(z, t), F.cross_entropy(z, label))


def test_soft_is_cross_entropy_with_probabilities():
    z, t = pair(2, 5, 30)
    assert torch.allclose(SoftPseudoLabelLoss()(z, t), F.cross_entropy(z, t.softmax(1)))


def test_negative_learning_is_its_formula():
    z, t = pair(2, 5, 30)
    negative = t.softmax(1) < 0.15
    expected = -((1 - z.softmax(1)).log() * negative).sum(1).mean()
    loss = NegativeLearningLoss(threshold=0.15)
    assert torch.allclose(loss(z, t), expected)
    assert loss.statistics['mask_ratio'].item() == pytest.approx(negative.any(1).double().mean().item())
