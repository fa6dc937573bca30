"""The fused loss against the written-out equations, over shapes, dtypes, layouts and corner cases."""

import itertools
import json
import math
import threading
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from mmssl.functional import fpl, fpl_fused
from mmssl.functional.fpl_fused import fpl_loss, sorting_network


def oracle(z, t, cum_prob=0.9, max_k=None, k_rule='n-1', k_ratio=0.5, weight_mode='concave', weight_scale=50.,
           weight_bound='positive_mean'):
    """Second implementation, one pixel and one class at a time, on (N, C, P) in float64: loss w L^f and K."""
    num_classes = z.shape[1]
    losses, ks = [], []
    for n, s in itertools.product(range(z.shape[0]), range(z.shape[2])):
        p = t[n, :, s].double().softmax(0).tolist()
        order = sorted(range(num_classes), key=lambda c: (-p[c], c))
        total, count = 0., 0
        while count < num_classes and total < cum_prob:
            total += p[order[count]]
            count += 1
        k = {'n-1': count - 1, 'n': count, 'ratio': math.floor(k_ratio * count)}[k_rule]
        k = min(max(k, 1), num_classes - 1, max_k or num_classes)
        y, q = order[:k], p[order[k]]
        m = sum(p[c] for c in y) / k if weight_bound == 'positive_mean' else sum(p[c] for c in order[:k + 1]) / (k + 1)
        w = {'concave': math.log(1 + weight_scale * max(m - q, 0)) / math.log(1 + weight_scale * m),
             'linear': (m - q) / m, 'convex': (m - q) / (m + q), 'convex_ael': (m - q) / (m + 4 * q),
             'none': 1.}[weight_mode]
        product = sum(torch.exp(-z[n, c, s]) for c in y) * sum(torch.exp(z[n, c, s]) for c in order[k:])
        losses.append(torch.log(1 + product) * w)
        ks.append(k)
    return torch.stack(losses).view(z.shape[0], -1), torch.tensor(ks).view(z.shape[0], -1)


def readable(z, t, weight_mode='concave', weight_scale=50., weight_bound='positive_mean', **kwargs):
    """The functions of fpl.py, composed."""
    fuzzy = fpl.fuzzy_positive_assignment(t, **kwargs)
    weight = fpl.fuzzy_positive_weight(fuzzy.positive_prob, fuzzy.negative_prob, fuzzy.k, weight_mode, weight_scale,
                                       weight_bound)
    return fpl.fuzzy_positive_loss(z, fuzzy.positive) * weight, fuzzy.k, weight


def pair(*shape, scale=3., dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    z = (torch.randn(*shape, generator=generator, dtype=torch.float64) * scale).to(dtype).requires_grad_()
    return z, (torch.randn(*shape, generator=generator, dtype=torch.float64) * scale).to(dtype)


@pytest.mark.parametrize('kwargs', [
    {}, dict(max_k=3, weight_bound='top_k_plus_1'), dict(k_rule='n'), dict(k_rule='ratio', k_ratio=0.6),
    dict(weight_mode='linear', cum_prob=0.7), dict(weight_mode='convex', weight_bound='top_k_plus_1'),
    dict(weight_mode='convex_ael', cum_prob=0.4), dict(weight_mode='none', max_k=1), dict(weight_scale=3.)])
@pytest.mark.parametrize(('num_classes', 'scale'), [(2, 1.), (5, 0.5), (7, 4.)])
def test_against_loops(num_classes, scale, kwargs):
    z, t = pair(2, num_classes, 30, scale=scale)
    expected, k = oracle(z, t, **kwargs)
    result = fpl_loss(z, t, reduction='none', **kwargs)
    assert torch.equal(result.k.long(), k)
    assert torch.allclose(result.loss, expected, rtol=1e-9, atol=1e-11)
    mean = fpl_loss(z, t, **kwargs).loss
    assert torch.allclose(mean, expected.mean(), rtol=1e-10)
    assert torch.allclose(torch.autograd.grad(mean, z)[0], torch.autograd.grad(expected.mean(), z)[0], atol=1e-12)


@pytest.mark.parametrize('blocks', [(7, 3, 2), (64, 10, 33), (1 << 16, 1 << 15, 1 << 13)])
@pytest.mark.parametrize('shape', [(11, 4), (3, 4, 5), (2, 21, 13, 17), (1, 3, 1, 1), (2, 5, 2, 3, 4), (40, 3, 2)])
@pytest.mark.parametrize('scale', [0.3, 5., 40.])
def test_shapes_blocks_and_sharpness(shape, blocks, scale, monkeypatch):
    """Blocks of part of an image and of several images; teachers without and with the shortcut for sure pixels."""
    for name, size in zip(('CPU_BLOCK', 'CPU_RANK_BLOCK', 'CPU_ROWS_BLOCK'), blocks, strict=True):
        monkeypatch.setattr(fpl_fused, name, size)
    z, t = pair(*shape, scale=scale)
    expected, k, weight = readable(z, t)
    result = fpl_loss(z, t)
    assert torch.equal(result.k.long(), k)
    assert torch.allclose(result.weight, weight, atol=1e-12)
    assert torch.allclose(result.loss, expected.mean(), rtol=1e-10)
    gradient, = torch.autograd.grad(result.loss, z)
    assert gradient.shape == z.shape
    assert torch.allclose(gradient, torch.autograd.grad(expected.mean(), z)[0], atol=1e-12)


@pytest.mark.parametrize('layout', ['channels_last', 'transposed', 'strided', 'expanded'])
def test_memory_layouts(layout):
    z, t = pair(3, 6, 8, 8)
    change = {'channels_last': lambda x: x.contiguous(memory_format=torch.channels_last),
              'transposed': lambda x: x.transpose(2, 3), 'strided': lambda x: x[:, :, ::2, 1::3],
              'expanded': lambda x: x[:1].expand(3, -1, -1, -1)}[layout]
    a, b = change(z), change(t)
    expected = readable(a, b)[0].mean()
    loss = fpl_loss(a, b).loss
    assert torch.allclose(loss, expected)
    assert torch.allclose(*(torch.autograd.grad(x, z, retain_graph=True)[0] for x in (loss, expected)), atol=1e-12)


def test_one_positive_is_cross_entropy():
    z, t = pair(2, 9, 6, 5)
    loss = fpl_loss(z, t, max_k=1, weight_mode='none').loss
    expected = F.cross_entropy(z, t.argmax(1))
    assert torch.allclose(loss, expected, rtol=1e-12)
    assert torch.allclose(*(torch.autograd.grad(x, z)[0] for x in (loss, expected)), atol=1e-13)


@pytest.mark.parametrize('kwargs', [{}, dict(reduction='sum', max_k=2), dict(reduction='none', weight_mode='linear'),
                                    dict(avg_factor=7., loss_scale=0.3)])
@pytest.mark.parametrize('shape', [(4, 5), (2, 5, 3, 2)])
def test_gradcheck(shape, kwargs):
    z, t = pair(*shape, scale=1.)
    assert torch.autograd.gradcheck(lambda x: fpl_loss(x, t, **kwargs).loss, (z,))


def test_second_derivative_is_refused():
    z, t = pair(2, 5, 4)
    with pytest.raises(RuntimeError, match='differentiated twice'):
        torch.autograd.grad(fpl_loss(z, t).loss, z, create_graph=True)


@pytest.mark.parametrize('factor', [1., 2.5])
def test_backward_twice_gives_the_same_gradient(factor):
    """The kept gradient is handed out without a copy for a factor of 1: nothing may be scaled or added in place."""
    z, t = pair(2, 5, 4)
    loss = fpl_loss(z, t).loss
    first, = torch.autograd.grad(loss, z, torch.tensor(factor, dtype=z.dtype), retain_graph=True)
    kept = first.clone()
    (loss * factor).backward(retain_graph=True)
    (loss * factor).backward()
    assert torch.equal(first, kept)
    assert torch.allclose(z.grad, 2 * kept)


@pytest.mark.parametrize('block', [10, 1 << 15])
@pytest.mark.parametrize('kwargs', [{}, dict(balance='ce_value'), dict(reduction='sum'), dict(reduction='none')])
def test_valid_is_the_loss_of_the_valid_pixels(kwargs, block, monkeypatch):
    monkeypatch.setattr(fpl_fused, 'CPU_BLOCK', block)
    z, t = pair(2, 5, 6, 4)
    valid = torch.rand(2, 6, 4, generator=torch.Generator().manual_seed(1)) > 0.4
    with torch.no_grad():  # whatever lies in the padding
        z[~valid.unsqueeze(1).expand_as(z)] = math.nan
        t[0, :, 0][:, ~valid[0, 0]] = math.inf
    compact = z.detach().transpose(0, 1)[:, valid].T.requires_grad_()
    expected = fpl_loss(compact, t.transpose(0, 1)[:, valid].T, **kwargs).loss
    loss = fpl_loss(z, t, valid=valid, **kwargs).loss
    if kwargs.get('reduction') == 'none':
        assert (loss[~valid] == 0).all()
        loss = loss[valid]
    assert torch.allclose(loss, expected, rtol=1e-11)
    gradient, = torch.autograd.grad(loss.sum(), z)
    compact_gradient, = torch.autograd.grad(expected.sum(), compact)
    assert torch.allclose(gradient.transpose(0, 1)[:, valid].T, compact_gradient, atol=1e-12)
    assert (gradient.transpose(0, 1)[:, ~valid] == 0).all()


@pytest.mark.parametrize('balance', [None, 'ce_value'])
def test_nothing_valid_is_an_attached_zero(balance):
    z, t = pair(2, 5, 6)
    loss = fpl_loss(z, t, valid=torch.zeros(2, 6, dtype=torch.bool), balance=balance).loss
    assert loss.item() == 0
    assert (torch.autograd.grad(loss, z)[0] == 0).all()


@pytest.mark.parametrize('shape', [(0, 5, 3, 3), (2, 5, 0), (0, 5)])
def test_no_pixels(shape):
    z, t = pair(*shape)
    loss = fpl_loss(z, t).loss
    assert loss.item() == 0
    loss.backward()
    assert z.grad.shape == z.shape


@pytest.mark.parametrize('reduction', ['mean', 'sum', 'none'])
def test_pixel_weight_and_avg_factor(reduction):
    z, t = pair(2, 5, 6)
    weight = torch.rand(2, 6, dtype=torch.float64, requires_grad=True)
    pixels = readable(z, t)[0] * weight.detach()
    expected = {'mean': pixels.mean(), 'sum': pixels.sum(), 'none': pixels}[reduction]
    loss = fpl_loss(z, t, weight=weight, reduction=reduction).loss
    assert torch.allclose(loss, expected)
    upstream = torch.rand_like(expected)
    gradient, = torch.autograd.grad(loss, z, upstream)
    assert torch.allclose(gradient, torch.autograd.grad(expected, z, upstream)[0], atol=1e-12)
    for avg_factor in (3, 3., torch.tensor(3)):
        assert torch.allclose(fpl_loss(z, t, weight=weight, avg_factor=avg_factor).loss, pixels.sum() / 3)
    with pytest.raises(ValueError, match='avg_factor'):
        fpl_loss(z, t, reduction='sum', avg_factor=3)


@pytest.mark.parametrize('scale', [1., 20.])
def test_balance_has_the_value_of_cross_entropy_and_the_direction_of_fpl(scale):
    z, t = pair(2, 7, 9, 8, scale=scale)
    plain, balanced = fpl_loss(z, t), fpl_loss(z, t, balance='ce_value')
    expected = F.cross_entropy(z, t.argmax(1))
    assert torch.allclose(balanced.loss, expected)
    assert torch.allclose(balanced.balance, expected / plain.loss)
    gradient, = torch.autograd.grad(plain.loss, z)
    assert torch.allclose(torch.autograd.grad(balanced.loss, z)[0], gradient * balanced.balance)


def test_balance_vector():
    vectors = json.loads((Path(__file__).parent / 'fpl_vectors.json').read_text())
    z, t = (torch.tensor(vectors[key], dtype=torch.float64) for key in ('student', 'teacher'))
    released = dict(max_k=3, weight_bound='top_k_plus_1')
    assert fpl_loss(z, t, **released).loss.item() == pytest.approx(vectors['mean_weighted_fpl'], abs=1e-9)
    result = fpl_loss(z, t, balance='ce_value', **released)
    assert result.loss.item() == pytest.approx(vectors['mean_cross_entropy'], abs=1e-9)
    assert result.balance.item() == pytest.approx(vectors['balance'], abs=1e-9)


@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_float32(dtype):
    z, t = pair(2, 6, 10, dtype=dtype)
    loss = fpl_loss(z, t).loss
    assert loss.dtype == torch.float32
    wide = z.detach().float().requires_grad_()
    expected = fpl_loss(wide, t.float()).loss
    assert torch.equal(loss, expected)
    gradient, = torch.autograd.grad(loss, z)
    assert gradient.dtype == dtype
    assert torch.equal(gradient, torch.autograd.grad(expected, wide)[0].to(dtype))


def test_autocast_changes_nothing():
    z, t = pair(2, 6, 10, dtype=torch.float32)
    expected = fpl_loss(z, t).loss
    with torch.autocast('cpu', dtype=torch.bfloat16):
        loss = fpl_loss(z, t).loss
    assert loss.dtype == torch.float32
    assert torch.equal(loss, expected)


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize('scale', [1., 12.])
def test_threads(two_threads, scale, monkeypatch):
    """Same numbers as one thread, the same again every time, and PyTorch's own setting as before."""
    monkeypatch.setattr(fpl_fused, 'CPU_BLOCK', 500)
    z, t = pair(2, 9, 60, 70, scale=scale, dtype=torch.float32)
    runs = []
    for _ in range(3):
        result = fpl_loss(z, t)
        runs.append((result.loss, *torch.autograd.grad(result.loss, z)))
        assert torch.get_num_threads() == 2
    for run in runs[1:]:
        assert all(torch.equal(a, b) for a, b in zip(run, runs[0], strict=True))
    in_new_thread = []
    thread = threading.Thread(target=lambda: in_new_thread.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert in_new_thread == [2]
    torch.set_num_threads(1)
    single = fpl_loss(z, t).loss
    assert torch.allclose(single, runs[0][0], rtol=1e-6)
    assert torch.allclose(torch.autograd.grad(single, z)[0], runs[0][1], atol=1e-9)


def test_threads_in_inference_mode(two_threads, monkeypatch):
    """The mode is a setting of the thread; without it the workers could not write into the caller's tensors."""
    monkeypatch.setattr(fpl_fused, 'CPU_BLOCK', 50)
    z, t = pair(2, 9, 60)
    expected = fpl_loss(z, t).loss
    with torch.inference_mode():
        assert torch.equal(fpl_loss(z, t).loss, expected)


def test_error_in_a_thread_reaches_the_caller(two_threads, monkeypatch):
    monkeypatch.setattr(fpl_fused, 'CPU_BLOCK', 50)
    monkeypatch.setattr(fpl_fused, 'block_loss', lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fpl_loss(*pair(2, 9, 60))


EXTREMES = [[1e4, -1e4, 0], [-1e4, 1e4, 1e4], [5, 5, 5], [0, 0, 0], [-1e4, -1e4, -1e4], [65504, -65504, 65504],
            ['max', '-max', 0], ['-max', '-max', '-max'], ['max', 'max', 'max'], ['-max', 'max', 1], ['tiny', 0, 'max']]


@pytest.mark.parametrize('kwargs', [{}, dict(k_rule='n'), dict(balance='ce_value')])
@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_finite_for_every_finite_logit(dtype, kwargs):
    info = torch.finfo(dtype)
    named = {'max': info.max, '-max': info.min, 'tiny': info.tiny}
    values = torch.tensor([[named.get(v, v) for v in row] for row in EXTREMES], dtype=torch.float64)
    values = values.clamp(info.min, info.max).to(dtype)
    pairs = list(itertools.product(range(len(values)), repeat=2))
    z = values[[i for i, _ in pairs]].requires_grad_()
    t = values[[j for _, j in pairs]]
    loss = fpl_loss(z, t, **kwargs).loss
    assert loss.isfinite()
    assert torch.autograd.grad(loss, z)[0].isfinite().all()
    gradient, = torch.autograd.grad(fpl_loss(z, t, reduction='sum').loss, z)
    assert (gradient.abs() <= 1).all()


def test_non_finite_logits_are_not_hidden():
    z, t = pair(1, 4, 3)
    with torch.no_grad():
        z[0, 1, 1] = math.nan
    assert not fpl_loss(z, t).loss.isfinite()


@pytest.mark.parametrize('dtype', [torch.float64, torch.bfloat16])
@pytest.mark.parametrize('scale', [0.5, 4.])
def test_equal_probabilities(dtype, scale):
    """Logits on a coarse grid: many ties, at the border of Y too. Y has exactly K classes, the first ones."""
    z, t = pair(3, 8, 50)
    t = (t * scale / 3).round().to(dtype)
    expected, k, _ = readable(z, t.double())
    result = fpl_loss(z, t, reduction='none')
    assert torch.equal(result.k.long(), k)
    assert torch.allclose(result.loss, expected)
    assert torch.equal(fpl_loss(z, t, reduction='none').loss, result.loss)


@pytest.mark.parametrize(('rule', 'expected'), [('n-1', 2), ('n', 1)])
def test_shortcut_is_taken_by_sure_teachers_only(rule, expected):
    """And never where equal first classes could pass for one: T of two thirds (one half for K = n) or less."""
    def choose(t, cum_prob=0.9):
        return fpl_fused.choose_shortcut(t, fpl_fused.FPLOptions(cum_prob=cum_prob, k_rule=rule))

    sure, unsure = pair(2, 6, 5000, scale=30.)[1], pair(2, 6, 5000, scale=0.1)[1]
    assert choose(sure) == expected
    assert choose(unsure) == 0
    assert choose(sure, expected / (expected + 1)) == 0
    assert choose(sure, expected / (expected + 1) + 0.01) == expected


@pytest.mark.parametrize('rule', ['n-1', 'n'])
@pytest.mark.parametrize('cum_prob', [0.51, 0.67, 0.9])
def test_equal_first_classes_do_not_take_the_shortcut(rule, cum_prob):
    """Among sure pixels, some with two or three equal first classes."""
    t = torch.full((1, 5, 60), -20., dtype=torch.float64)
    t[0, 2] = 0
    t[0, 1, ::7] = 0
    t[0, 4, ::14] = 0
    z = pair(1, 5, 60)[0]
    expected, k, _ = readable(z, t, cum_prob=cum_prob, k_rule=rule)
    result = fpl_loss(z, t, cum_prob=cum_prob, k_rule=rule, reduction='none')
    assert torch.equal(result.k.long(), k)
    assert torch.allclose(result.loss, expected)


def test_all_classes_equal():
    z, t = torch.randn(4, 10, dtype=torch.float64), torch.zeros(4, 10, dtype=torch.float64)
    k = fpl_loss(z, t).k
    assert ((k >= 7) & (k <= 9)).all()


def test_classes_may_be_permuted_and_logits_shifted():
    z, t = pair(3, 9, 20)
    order = torch.randperm(9)
    loss = fpl_loss(z, t).loss
    assert torch.allclose(fpl_loss(z[:, order], t[:, order]).loss, loss)
    assert torch.allclose(fpl_loss(z + 17, t - 5).loss, loss)
    gradient, = torch.autograd.grad(loss, z)
    permuted = z.detach()[:, order].requires_grad_()
    assert torch.allclose(torch.autograd.grad(fpl_loss(permuted, t[:, order]).loss, permuted)[0], gradient[:, order])


def test_pull_equals_push():
    z, t = pair(3, 9, 20)
    gradient, = torch.autograd.grad(fpl_loss(z, t, weight_mode='none', reduction='sum').loss, z)
    pull, push = -gradient.clamp(max=0).sum(1), gradient.clamp(min=0).sum(1)
    assert torch.allclose(pull, push)
    assert ((pull > 0) & (pull < 1)).all()
    assert ((gradient < 0).sum(1) == fpl_loss(z, t).k).all()


def test_no_gradient_to_the_teacher_and_none_kept_without_need():
    z, t = pair(2, 5, 4)
    t.requires_grad_()
    fpl_loss(z, t).loss.backward()
    assert t.grad is None
    assert not fpl_loss(z.detach(), t).loss.requires_grad
    with torch.no_grad():
        assert not fpl_loss(z, t).loss.requires_grad


def test_inputs_are_not_changed():
    z, t = pair(2, 5, 40, dtype=torch.float32)
    before = z.clone(), t.clone()
    fpl_loss(z, t, balance='ce_value').loss.backward()
    assert torch.equal(z, before[0])
    assert torch.equal(t, before[1])


@pytest.mark.parametrize(('z', 't', 'kwargs', 'message'), [
    ((2, 1, 4), (2, 1, 4), {}, 'at least 2 classes'), ((2,), (2,), {}, 'at least 2 classes'),
    ((2, 3, 4), (2, 3, 5), {}, 'target_logits'), ((2, 3, 4), (2, 4, 4), {}, 'target_logits'),
    ((2, 3, 4), (2, 3, 4), dict(weight=torch.ones(2, 3)), '`weight`'),
    ((2, 3, 4), (2, 3, 4), dict(valid=torch.ones(8, dtype=torch.bool)), '`valid`'),
    ((2, 3, 4), (2, 3, 4), dict(valid=torch.ones(2, 4)), 'bool'),
    ((2, 3, 4), (2, 3, 4), dict(reduction='average'), 'reduction')])
def test_bad_input(z, t, kwargs, message):
    with pytest.raises(ValueError, match=message):
        fpl_loss(torch.zeros(z), torch.zeros(t), **kwargs)


def test_labels_in_place_of_logits_are_refused():
    with pytest.raises(ValueError, match='floating point'):
        fpl_loss(torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.long))


@pytest.mark.parametrize('size', [1, 2, 3, 5, 8, 19, 21, 32, 33])
def test_sorting_network_sorts(size):
    """The zero-one principle: a network that sorts every sequence of zeros and ones sorts everything."""
    if size <= 8:
        values = torch.tensor(list(itertools.product([0., 1.], repeat=size)))
    else:
        values = torch.rand(500, size, generator=torch.Generator().manual_seed(0)).mul(size).floor()
    for top in {1, min(4, size), size}:
        columns = values.clone()
        for i, j in sorting_network(size, top):
            a, b = columns[:, i].clone(), columns[:, j].clone()
            columns[:, i], columns[:, j] = torch.maximum(a, b), torch.minimum(a, b)
        expected = values.sort(dim=1, descending=True).values
        assert torch.equal(columns[:, :top], expected[:, :top])
        assert torch.equal(columns.sort(dim=1, descending=True).values, expected)  # the rest is a permutation


def test_network_for_few_ranks_is_smaller():
    assert len(sorting_network(21, 4)) < len(sorting_network(21, 21))
