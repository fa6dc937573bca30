"""Stateless randomness: random numbers that depend on what is computed, not on what was computed before."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch.utils.data import get_worker_info


@contextmanager
def stateless_randomness(*numbers: int) -> Iterator[None]:
    """Seed python, numpy and torch (CPU) from ``numbers`` inside the block, and restore all three after it.

    In a worker of a data loader nothing is restored: there, only such blocks use random numbers, and restoring takes
    longer than seeding.

    The same numbers give the same block, in the main process or in any worker, on any rank, and after any resume.
    Libraries with generators of their own (albumentations 2, for one) are not reached.

    Args:
        numbers: Integers >= 0, for example seed, source and draw.
    """
    state = np.random.SeedSequence(numbers).generate_state(16)
    in_worker = get_worker_info() is not None
    before = None if in_worker else (random.getstate(), np.random.get_state(), torch.get_rng_state())
    random.seed(int.from_bytes(state[:8].tobytes(), 'little'))
    np.random.seed(state[8:14])
    # Not torch.manual_seed(): that would reseed the GPUs of the main process as well, and nothing restores those.
    torch.default_generator.manual_seed(int.from_bytes(state[14:].tobytes(), 'little') >> 1)
    try:
        yield
    finally:
        if before is not None:
            random.setstate(before[0])
            np.random.set_state(before[1])
            torch.set_rng_state(before[2])
