"""Moving averages: momentum with warm-up, and the update in place."""

import pytest
import torch

from mmssl.functional.ema import ema_momentum, ema_update_


def test_warmup_makes_the_plain_mean_of_all_states():
    states = torch.randn(8, 5, dtype=torch.float64)
    average = torch.full((5,), 1e6, dtype=torch.float64)  # forgotten at once: the first momentum is 1
    for step, state in enumerate(states):
        ema_update_([average], [state], ema_momentum(step, 0.01))
        torch.testing.assert_close(average, states[:step + 1].mean(dim=0))


def test_momentum_is_the_published_decay():
    for step in (0, 1, 98, 99, 100, 10_000):
        assert 1 - ema_momentum(step, 0.01) == pytest.approx(min(1 - 1 / (step + 1), 0.99))
    assert [ema_momentum(step, 0.01, warmup=False) for step in (0, 5)] == [0.01, 0.01]


@pytest.mark.parametrize('momentum', [0., 0.001, 0.3, 0.7, 1.])
@pytest.mark.parametrize('dtype', [torch.float64, torch.float32, torch.bfloat16])
def test_update_is_the_formula(momentum, dtype):
    averages = [torch.randn(shape).to(dtype) for shape in [(3, 4), (), (0,)]]
    values = [torch.randn(average.shape) for average in averages]
    expected = [((1 - momentum) * a.double() + momentum * v.to(dtype).double()).to(dtype)
                for a, v in zip(averages, values, strict=True)]
    ema_update_(averages, values, momentum)
    for average, result in zip(averages, expected, strict=True):
        assert average.dtype == dtype
        torch.testing.assert_close(average, result)


def test_ends_are_exact():
    average, value = torch.tensor([1e8, 1., float('inf')]), torch.tensor([1e-8, 3., 2.])
    kept = average.clone()
    ema_update_([average], [value], 0.)
    assert torch.equal(average, kept)
    ema_update_([average], [value], 1.)
    assert torch.equal(average, value)


def test_integers_are_copied():
    averages = [torch.tensor(5), torch.tensor([True, False]), torch.tensor(1.)]
    ema_update_(averages, [torch.tensor(9), torch.tensor([False, True]), torch.tensor(2.)], 0.1)
    assert [average.tolist() for average in averages[:2]] == [9, [False, True]]
    assert averages[2].item() == pytest.approx(1.1)


def test_values_keep_their_graph_and_averages_have_none():
    value, average = torch.ones(2, requires_grad=True), torch.zeros(2)
    ema_update_([average], [value], 0.5)
    assert not average.requires_grad
    assert value.tolist() == [1, 1]


def test_wrong_arguments():
    with pytest.raises(ValueError, match='1 averages, but 0 values'):
        ema_update_([torch.ones(1)], [], 0.1)
    with pytest.raises(ValueError, match=r'`momentum` must be in \[0, 1\], got 1.5'):
        ema_update_([], [], 1.5)
    with pytest.raises(ValueError, match='ema_momentum'):
        ema_momentum(-1, 0.1)
