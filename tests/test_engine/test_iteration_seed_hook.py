"""IterationSeedHook: random numbers depend on seed, rank and iteration, and on nothing else."""

import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from mmssl.engine.hooks import IterationSeedHook


def draw(seed=0, iteration=5):
    IterationSeedHook().before_train_iter(SimpleNamespace(seed=seed, iter=iteration), 0)
    return random.random(), np.random.rand(), torch.rand(()).item()


def test_numbers_are_those_of_the_iteration():
    first = draw()
    random.random(), np.random.rand(7), torch.rand(3)
    assert draw() == first
    assert all(a != b for a, b in zip(draw(iteration=6), first, strict=True))
    assert all(a != b for a, b in zip(draw(seed=1), first, strict=True))


def test_ranks_draw_different_numbers(monkeypatch: pytest.MonkeyPatch):
    first = draw()
    monkeypatch.setattr('mmssl.engine.hooks.iteration_seed_hook.get_rank', lambda: 1)
    assert all(a != b for a, b in zip(draw(), first, strict=True))
