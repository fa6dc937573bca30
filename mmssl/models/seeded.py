"""Random draws of a model that a resumed run, or another number of processes, repeats."""

from typing import Any

import torch
from mmengine.dist import get_dist_info
from torch import nn


class SeededModule(nn.Module):
    """Module whose draws depend on a seed, the number of calls so far, and the place of an image in the global batch.

    Seed and counter are buffers and thus part of the checkpoint.

    Args:
        seed: Seed >= 0. ``None`` takes torch's seed at construction, which the runner has set from
            ``randomness.seed``.

    Raises:
        ValueError: If the seed is no integer >= 0.
    """

    def __init__(self, seed: int | None = None) -> None:
        super().__init__()
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
            raise ValueError(f'mmssl.{type(self).__name__}: `seed` must be an integer >= 0 or None, got {seed!r}')
        seed = torch.initial_seed() if seed is None else seed
        self.register_buffer('seed', torch.tensor(seed % 2**63, dtype=torch.long))
        self.register_buffer('step', torch.zeros((), dtype=torch.long))
        # The host's copies of both, so that no iteration waits for the GPU to read them.
        self._host: tuple[int, int] | None = None

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self._host = None

    def next_step(self) -> tuple[int, int]:
        """Seed and number of calls so far; counts this one."""
        seed, step = self._host or (int(self.seed), int(self.step))
        self._host = (seed, step + 1)
        self.step.fill_(step + 1)
        return seed, step


def check_per_unit(value: object, name: str, key: str) -> None:
    """Raise ValueError unless ``value``, what one unit of the sampler holds, is an integer >= 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f'{name}: `{key}` must be an integer >= 1, got {value!r}')


def global_indices(count: int, per_unit: int) -> list[int]:
    """Places in the global batch of the ``count`` items of this process.

    The sampler deals units to the ranks in turn: local unit u is global unit ``rank + world_size * u``.

    Args:
        count: Items of this process, >= 0.
        per_unit: Items of one unit, >= 1.
    """
    rank, world_size = get_dist_info()
    return [(rank + world_size * (item // per_unit)) * per_unit + item % per_unit for item in range(count)]
