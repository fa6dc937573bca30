"""The equations of ADR: test vectors, a second plain implementation, finite differences, limits and extreme logits."""

import itertools
import json
import math
from pathlib import Path

import pytest
import torch

from mmssl.functional import adr, adr_fused
from mmssl.functional.adr_fused import adr_loss, top_of_rows, top_rows

VECTORS = json.loads(Path(__file__).with_name('adr_vectors.json').read_text(encoding='utf-8'))
OPTIONS = [dict(zip(('topk', 'uncertainty', 'phi', 'norm', 'detach_phi'), values, strict=True))
           for values in itertools.product((1, 3), adr.UNCERTAINTIES, adr.PHIS, adr.NORMS, (False, True))]
SHAPES = [(7, 10), (2, 5, 30), (2, 21, 4, 3), (1, 4, 4), (3, 300)]


def random_logits(*shape, scale=2., dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=generator, dtype=torch.float64) * scale).to(dtype).requires_grad_()


def plain(logits, topk=3, uncertainty='entropy', phi='batch', norm=2, detach_phi=False, max_log_penalty=50.):
    """F of each row of (N, C), one number at a time."""
    rows = [[torch.exp(z) / torch.exp(row).sum() for z in row] for row in logits]
    c = len(rows[0])
    mean = sum(rows[0]) / c
    if uncertainty == 'entropy':
        values = [-sum(y * torch.log(y) for y in row) / math.log(c) for row in rows]
    else:
        largest = (1 - 1 / c)**2 / c + (c - 1) / c**3  # the variance of (1, 0, ..., 0)
        values = [1 - sum((y - mean.detach())**2 for y in row) / c / largest for row in rows]
    if phi == 'batch':
        values = [sum(values) / len(values)] * len(values)
    result = []
    for row, value in zip(rows, values, strict=True):
        value = value.detach() if detach_phi else value
        top = sorted(row, key=lambda y: -y.item())[:topk]
        total = sum(y**norm for y in top)
        f = (1 / torch.sqrt(2 * math.pi * value))**topk * torch.exp(-total / (2 * value))
        result.append(f if f < math.exp(max_log_penalty) else f.new_tensor(math.exp(max_log_penalty)))
    return torch.stack(result)


@pytest.mark.parametrize('case', VECTORS['adr'], ids=lambda case: f'{case["topk"]}-{case["mode"]}')
@pytest.mark.parametrize('as_map', [False, True])
def test_vectors(case, as_map):
    logits = torch.tensor(case['logits'], dtype=torch.float64)
    expected = {key: torch.tensor(case[key], dtype=torch.float64) for key in case if key not in ('topk', 'mode')}
    assert torch.allclose(adr.normalized_entropy(logits), expected['entropy_normalised'])
    assert torch.allclose(adr.top_confidence(logits.softmax(1), case['topk']), expected['T'])
    z = (logits.T.unsqueeze(0) if as_map else logits).clone().requires_grad_()
    result = adr_loss(z, topk=case['topk'], phi=case['mode'])
    assert torch.allclose(result.phi.expand(1, 3) if as_map else result.phi.expand(3), expected['phi'])
    assert torch.allclose(result.penalty.flatten(), expected['F'])
    assert torch.allclose(adr.log_penalty(expected['phi'], expected['T'], case['topk']), expected['logF'])
    assert torch.allclose(result.loss, expected['L_d_mean'])
    assert torch.allclose(adr_loss(z, topk=case['topk'], phi=case['mode'], reduction='sum').loss, expected['L_d_sum'])
    gradient, = torch.autograd.grad(result.loss, z)
    gradient = gradient[0].T if as_map else gradient
    assert torch.allclose(gradient, expected['grad_logits_of_mean'], atol=1e-11)
    readable = adr.adr_penalty(logits, case['topk'], phi=case['mode'])
    assert torch.allclose(readable, expected['F'])


def test_entropy_vector():
    logits = torch.tensor(VECTORS['adr'][0]['logits'], dtype=torch.float64)
    assert torch.allclose(adr.entropy(logits), torch.tensor(VECTORS['regularizers']['entropy'], dtype=torch.float64))


@pytest.mark.parametrize('options', OPTIONS, ids=str)
def test_against_a_second_implementation(options):
    z = random_logits(6, 5)
    expected = plain(z, **options)
    for result in (adr.adr_penalty(z, **options), adr_loss(z, reduction='none', **options).loss,
                   adr_loss(z.T.unsqueeze(0), reduction='none', **options).loss[0]):
        assert torch.allclose(result, expected, rtol=1e-10)
        weight = torch.arange(1., 7, dtype=torch.float64)
        gradients = [torch.autograd.grad((value * weight).sum(), z, retain_graph=True)[0]
                     for value in (result, expected)]
        assert torch.allclose(*gradients, atol=1e-12)


@pytest.mark.parametrize('shape', SHAPES)
@pytest.mark.parametrize('topk', [1, 3, 4])
def test_fused_is_the_readable_one(shape, topk):
    for options in OPTIONS[:16]:
        z = random_logits(*shape)
        options = {**options, 'topk': topk}
        valid = torch.rand(shape[0], *shape[2:]) > 0.3
        weight = torch.rand(shape[0], *shape[2:], dtype=torch.float64)
        result = adr_loss(z, valid=valid, weight=weight, loss_scale=2., **options)
        penalty = adr.adr_penalty(z, valid=valid, **options)
        expected = 2 * (penalty * weight * valid).sum() / valid.sum().clamp(min=1)
        assert torch.allclose(result.loss, expected, rtol=1e-10)
        gradients = [torch.autograd.grad(value, z)[0] for value in (result.loss, expected)]
        assert torch.allclose(*gradients, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize('blocks', [(7, 3), (64, 50), (1 << 15, 1 << 13)])
@pytest.mark.parametrize('shape', [(5, 7, 11), (1, 21, 90), (12, 3, 2, 2)])
def test_blocks(shape, blocks, monkeypatch):
    monkeypatch.setattr(adr_fused, 'CPU_BLOCK', blocks[0])
    monkeypatch.setattr(adr_fused, 'CPU_ROWS_BLOCK', blocks[1])
    z = random_logits(*shape)
    values = adr_loss(z).loss, adr.adr_penalty(z).mean()
    assert torch.allclose(*values, rtol=1e-10)
    assert torch.allclose(*(torch.autograd.grad(value, z)[0] for value in values), atol=1e-13)


@pytest.mark.parametrize('options', OPTIONS, ids=str)
@pytest.mark.parametrize('shape', [(4, 5), (2, 4, 3)])
def test_gradcheck(options, shape):
    z = random_logits(*shape, scale=1.)
    weight = torch.rand(shape[0], *shape[2:], dtype=torch.float64)
    if options['detach_phi']:
        # Finite differences move phi as well: compare at a phi that the others pin down.
        expected, = torch.autograd.grad((adr.adr_penalty(z, **options) * weight).sum(), z)
        actual, = torch.autograd.grad(adr_loss(z, weight=weight, reduction='sum', **options).loss, z)
        assert torch.allclose(actual, expected, atol=1e-12)
        return
    assert torch.autograd.gradcheck(lambda x: adr_loss(x, weight=weight, **options).loss, (z,))
    assert torch.autograd.gradcheck(lambda x: adr_loss(x, reduction='none', **options).loss, (z,))


def test_equation_8_is_the_gradient_to_the_probabilities():
    probs = random_logits(4, 6).detach().softmax(1).requires_grad_()
    phi = -(probs * probs.log()).sum(1) / math.log(6)
    penalty = adr.log_penalty(phi, adr.top_confidence(probs, 3), 3).exp()
    assert torch.allclose(torch.autograd.grad(penalty.sum(), probs)[0], adr.penalty_gradient(probs, 3))


@pytest.mark.parametrize('shape', [(6, 40), (2, 40, 3)])
def test_the_order_of_the_classes_does_not_matter(shape):
    z = random_logits(*shape)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(1))
    shuffled = z.detach()[:, order].requires_grad_()
    values = adr_loss(z).loss, adr_loss(shuffled).loss
    assert torch.allclose(*values)
    assert torch.allclose(torch.autograd.grad(values[0], z)[0][:, order], torch.autograd.grad(values[1], shuffled)[0])


@pytest.mark.parametrize('shape', [(3, 8), (1, 8, 3)])
def test_classes_that_tie_share_their_gradient(shape):
    """The mean over all choices of the top classes; so equal probabilities have no gradient at all."""
    z = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.grad(adr_loss(z).loss, z)[0].abs().max() < 1e-15
    rows = torch.tensor([[3., 1, 1, 1, 0, 0, 0, 0], [1., 1, 1, 1, 1, 0, 0, 0], [2., 2, 1, 1, 1, 0, 0, 0]]).double()
    z = (rows if len(shape) == 2 else rows.T.unsqueeze(0)).clone().requires_grad_()
    gradient, = torch.autograd.grad(adr_loss(z).loss, z)
    gradient = gradient if len(shape) == 2 else gradient[0].T
    for row, tied in zip(gradient, (slice(1, 4), slice(0, 5), slice(2, 5)), strict=True):
        assert row[tied].max() - row[tied].min() < 1e-15
    expected = 0
    for offsets in itertools.permutations(torch.linspace(0, 1e-9, 5, dtype=torch.float64)):
        moved = (rows + torch.cat([torch.stack(offsets), torch.zeros(3)])).requires_grad_()
        expected = expected + torch.autograd.grad(adr_loss(moved).loss, moved)[0] / 120
    assert torch.allclose(gradient, expected, atol=1e-8)


def test_monotone_for_tau_1_and_10_classes_and_not_beyond():
    p = torch.linspace(0.1, 0.999, 500, dtype=torch.float64)
    assert (adr.penalty_along_confidence(p, 10, 1).diff() < 0).all()
    for topk, best in ((2, 0.71), (3, 0.84), (5, 0.92), (10, 0.96)):
        assert p[adr.penalty_along_confidence(p, 10, topk).argmax()].item() == pytest.approx(best, abs=0.005)
    p = torch.linspace(0.01, 0.999, 1000, dtype=torch.float64)
    assert p[adr.penalty_along_confidence(p, 100, 1).argmax()].item() == pytest.approx(0.36, abs=0.01)


@pytest.mark.parametrize('options', [dict(uncertainty=kind, norm=norm) for kind in adr.UNCERTAINTIES
                                     for norm in adr.NORMS], ids=str)  # yapf: disable
def test_the_path_is_the_penalty_of_its_predictions(options):
    p = torch.tensor([0.2, 0.5, 0.9], dtype=torch.float64)
    rest = ((1 - p) / 4)[:, None].expand(3, 4)
    logits = torch.cat([p[:, None], rest], 1).log()
    assert torch.allclose(adr.penalty_along_confidence(p, 5, 2, **options),
                          adr_loss(logits, topk=2, phi='sample', **options).penalty)
    constant = adr.penalty_along_confidence(p, 5, 2, phi=0.3, **options)
    total = adr.top_confidence(logits.exp(), 2, options['norm'])
    assert torch.allclose(constant, adr.log_penalty(torch.tensor(0.3), total, 2).exp())


def test_limits():
    uniform, sure = torch.zeros(4, 10, dtype=torch.float64), torch.zeros(4, 10, dtype=torch.float64)
    sure[:, 0] = 30
    for topk, value in ((1, 0.397), (2, 0.158), (10, 9.7e-5)):
        assert adr_loss(uniform, topk=topk).penalty[0].item() == pytest.approx(value, rel=5e-3)
        sure.requires_grad_()
        loss = adr_loss(sure, topk=topk).loss
        assert loss.item() < 1e-30 and torch.autograd.grad(loss, sure)[0].abs().max() < 1e-30
        sure.requires_grad_(False)
    assert adr.turning_point(3) == pytest.approx(1 / 3)
    assert adr.log_peak(50) == pytest.approx(27, abs=0.2) and adr.log_peak(100) == pytest.approx(88, abs=0.5)
    assert adr.log_peak(17) < 0 < adr.log_peak(18)
    # The peak is where it is said to be.
    phi = torch.linspace(0.01, 1, 2000, dtype=torch.float64)
    values = adr.log_penalty(phi, torch.tensor(0.9), 4)
    assert phi[values.argmax()].item() == pytest.approx(adr.turning_point(4, 0.9), abs=1e-3)
    assert values.max().item() == pytest.approx(adr.log_peak(4, 0.9), abs=1e-5)


@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize('shape', [(400, 2), (400, 50), (2, 7, 300)])
@pytest.mark.parametrize('phi', adr.PHIS)
def test_finite_for_every_finite_logit(dtype, shape, phi):
    largest = torch.finfo(dtype).max
    levels = torch.tensor([largest, -largest, 1e4, -1e4, 0., 90, -90, 3], dtype=dtype)
    z = levels[torch.randint(0, 8, shape, generator=torch.Generator().manual_seed(0))].requires_grad_()
    for topk in {1, min(3, shape[1]), shape[1]}:
        for reduction in ('mean', 'sum'):
            for options in (dict(), dict(uncertainty='variance'), dict(norm=1)):
                loss = adr_loss(z, topk=topk, phi=phi, reduction=reduction, **options).loss
                assert loss.isfinite() and torch.autograd.grad(loss, z)[0].isfinite().all()


def test_extreme_logits_are_right_and_not_only_finite():
    z = torch.tensor([[3e38, 3e38, -3e38, 0], [3e38, 0, 0, -3e38]])
    small = torch.tensor([[0., 0, -1e3, -1e3], [0., -1e3, -1e3, -1e3]], dtype=torch.float64)
    for layout in (lambda x: x, lambda x: x.T.unsqueeze(0)):
        result = adr_loss(layout(z), topk=2, phi='sample')
        expected = adr_loss(layout(small), topk=2, phi='sample')
        assert torch.allclose(result.penalty.double(), expected.penalty) and expected.penalty.max() > 0.01


@pytest.mark.parametrize('dtype', [torch.float32, torch.float16])
def test_many_classes_and_an_exploding_penalty(dtype):
    z = random_logits(4, 21000, scale=1., dtype=dtype)
    for topk in (1, 3, 100, 21000):
        for options in (dict(phi='sample'), dict(phi='batch'), dict(max_log_penalty=0.)):
            result = adr_loss(z, topk=topk, **options)
            assert result.loss.isfinite() and torch.autograd.grad(result.loss, z)[0].isfinite().all()
            assert result.penalty.max() <= math.exp(options.get('max_log_penalty', 50.)) * 1.001
    # Unsure among sure ones: the batch mean lets the penalty explode.
    z = torch.zeros(256, 1000)
    z[1:, 0] = 20
    z.requires_grad_()
    result = adr_loss(z)
    assert result.penalty.max() > 200 and result.loss.isfinite()
    assert adr_loss(z, max_log_penalty=0.).penalty.max() == 1
    assert (torch.autograd.grad(adr_loss(z, max_log_penalty=0., detach_phi=True).loss, z)[0][0] == 0).all()


@pytest.mark.parametrize('shape', [(300, 40), (2, 21, 200)])
@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize('scale', [1., 20., 300.])
def test_lower_precision(shape, dtype, scale):
    z = random_logits(*shape, scale=scale, dtype=dtype)
    exact = z.detach().double().requires_grad_()
    for options in (dict(), dict(phi='sample'), dict(topk=1, uncertainty='variance')):
        loss, expected = adr_loss(z, **options).loss, adr_loss(exact, **options).loss
        assert loss.dtype == torch.float32
        assert torch.allclose(loss.double(), expected, rtol=1e-4, atol=1e-12)
        gradient, = torch.autograd.grad(loss * 1024, z)
        reference = torch.autograd.grad(expected * 1024, exact)[0]
        assert gradient.dtype == dtype
        tolerance = {torch.float32: 1e-4, torch.bfloat16: 1e-2, torch.float16: 2e-3}[dtype]
        smallest = 1e-7 if dtype == torch.float16 else 1e-12
        assert (gradient.double() - reference).abs().max() <= tolerance * reference.abs().max() + smallest


@pytest.mark.parametrize('shape', [(4, 6), (2, 6, 5)])
def test_what_is_not_valid_has_no_part_whatever_it_holds(shape):
    z = random_logits(*shape)
    valid = torch.rand(shape[0], *shape[2:], generator=torch.Generator().manual_seed(1)) > 0.4
    compact = z.detach() if z.dim() == 2 else z.detach().transpose(1, 2)
    compact = compact[valid].requires_grad_()
    with torch.no_grad():
        z[~valid.unsqueeze(1).expand_as(z)] = math.nan
    for phi in adr.PHIS:
        loss, expected = adr_loss(z, valid=valid, phi=phi).loss, adr_loss(compact, phi=phi).loss
        assert torch.allclose(loss, expected)
        gradient = torch.autograd.grad(loss, z)[0]
        gradient = gradient if z.dim() == 2 else gradient.transpose(1, 2)
        assert torch.allclose(gradient[valid], torch.autograd.grad(expected, compact)[0])
        assert (gradient[~valid] == 0).all()


@pytest.mark.parametrize('shape', [(3, 5), (3, 5, 4), (0, 5), (0, 5, 4)])
def test_nothing_valid_is_an_attached_zero(shape):
    z = random_logits(*shape)
    for phi in adr.PHIS:
        loss = adr_loss(z, valid=torch.zeros(shape[0], *shape[2:], dtype=torch.bool), phi=phi).loss
        assert loss.item() == 0 and (torch.autograd.grad(loss, z)[0] == 0).all()


@pytest.mark.parametrize('phi', adr.PHIS)
def test_processes_that_reduce_are_one_process(phi):
    """Two ranks of different size, simulated one after the other: sums of the other rank come from a first round."""
    whole = random_logits(6, 5)
    valid = torch.tensor([True, True, False, True, True, True])
    expected = torch.autograd.grad(adr_loss(whole, phi=phi, valid=valid).loss, whole)[0]
    ranks = [slice(0, 3), slice(3, 6)]
    seen: list[list[torch.Tensor]] = [[], []]

    def run(rank, others):
        calls = iter(others)

        def reduce(values):
            seen[rank].append(values.clone())
            return values + next(calls, torch.zeros_like(values))
        z = whole.detach()[ranks[rank]].requires_grad_()
        return torch.autograd.grad(adr_loss(z, phi=phi, valid=valid[ranks[rank]], reduce=reduce).loss, z)[0]

    # The second sum (in backward) depends on the first: as many rounds as sums make all of them right.
    for _ in range(3):
        others = [list(calls) for calls in seen]
        seen[:] = [[], []]
        parts = [run(0, others[1]), run(1, others[0])]
    assert torch.allclose(torch.cat(parts) / 2, expected, atol=1e-14)


def test_twice_differentiated_is_refused():
    z = random_logits(3, 4)
    gradient, = torch.autograd.grad(adr_loss(z).loss, z, retain_graph=True)
    assert torch.equal(gradient, torch.autograd.grad(adr_loss(z).loss, z)[0])
    with pytest.raises(RuntimeError, match='create_graph'):
        torch.autograd.grad(adr_loss(z).loss, z, create_graph=True)


@pytest.mark.parametrize('k', [1, 2, 3, 5, 11])
def test_top_classes(k):
    for num_classes in (k, 64 * k, 64 * k - 1, 700, 1000, 1003):
        values = torch.randn(9, num_classes)
        found, index = top_of_rows(values, k)
        assert torch.equal(found, values.topk(k, dim=1).values) and torch.equal(values.gather(1, index), found)
        assert index.sort(dim=1).values.diff(dim=1).ne(0).all(), 'a class is there once'
    assert torch.equal(torch.stack(top_rows(values[:, :30].T, k)), values[:, :30].topk(k, dim=1).values.T)


def test_top_classes_with_ties():
    for tied in (torch.randint(0, 4, (9, 700)).float(), torch.zeros(2, 400)):
        found, index = top_of_rows(tied, 3)
        assert torch.equal(found, tied.topk(3, dim=1).values) and torch.equal(tied.gather(1, index), found)
        assert index.sort(dim=1).values.diff(dim=1).ne(0).all()
    assert torch.equal(torch.stack(top_rows(tied[:, :30].T, 3)), tied[:, :30].topk(3, dim=1).values.T)


def test_top_classes_of_the_smallest_and_largest_numbers():
    values = torch.tensor([0., -0., 1e-45, -1e-45, 3e38, -3e38, 1., -1.]).repeat(4, 60)
    values = values[:, torch.randperm(480)]
    for k in (4, 16):
        assert torch.equal(top_of_rows(values, k)[0], values.topk(k, dim=1).values)


@pytest.mark.parametrize('value', [math.nan, math.inf])
@pytest.mark.parametrize('num_classes', [5, 700])
def test_logits_that_are_not_finite_make_no_finite_loss(value, num_classes):
    z = torch.randn(4, num_classes)
    z[1, 3] = value
    assert not adr_loss(z, topk=2).loss.isfinite()


@pytest.mark.parametrize(('shape', 'kwargs', 'message'), [
    ((3, 1), {}, 'at least 2 classes'), ((3, 2), {}, '`topk` must be at most the number of classes, 2, got 3'),
    ((3, 4), dict(valid=torch.ones(3)), 'bool'), ((3, 4), dict(weight=torch.ones(4)), '`weight`'),
    ((3, 4), dict(reduction='avg'), '`reduction`')])
def test_bad_input(shape, kwargs, message):
    with pytest.raises(ValueError, match=message):
        adr_loss(torch.zeros(shape), **kwargs)
