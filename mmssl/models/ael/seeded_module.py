"""Base of modules whose random numbers are a function of seed, step and place in the global batch."""

from typing import Any

import numpy as np
import torch
from torch import nn


class SeededModule(nn.Module):
    """Hands out random numbers that a resumed run, and a run on another number of processes, draws again.

    Seed and step are buffers and thus part of the checkpoint.

    Attributes:
        last_step: Seed and step of the last call of :meth:`next_step`.

    Args:
        seed: Integer >= 0, or ``None`` for torch's seed at construction, which the runner has set from
            ``randomness.seed``.

    Raises:
        ValueError: If the seed is none.
    """

    # Keeps the draws of each sub-class apart from those of other streams with the same seed.
    STREAM = 0

    def __init__(self, seed: int | None = None) -> None:
        super().__init__()
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
            raise ValueError(f'mmssl.{type(self).__name__}: `seed` must be an integer >= 0 or None, got {seed!r}')
        seed = torch.initial_seed() if seed is None else seed
        self.register_buffer('seed', torch.tensor(seed % 2**63, dtype=torch.long))
        self.register_buffer('step', torch.zeros((), dtype=torch.long))
        # The host's copies of both, so that no iteration waits for the GPU to read them.
        self._host: tuple[int, int] | None = None
        self.last_step = (0, 0)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self._host = None

    def next_step(self) -> tuple[int, int]:
        """Seed and step of this iteration; advances the step."""
        seed, step = self._host or (int(self.seed), int(self.step))
        self._host = (seed, step + 1)
        self.step.fill_(step + 1)
        self.last_step = (seed, step)
        return seed, step

    def numbers(self, seed: int, step: int, place: int) -> np.random.Generator:
        """Random numbers of one image.

        Args:
            seed: From :meth:`next_step`.
            step: From :meth:`next_step`.
            place: Place of the image in the batch of all processes, >= 0.
        """
        return np.random.Generator(np.random.Philox(np.random.SeedSequence((self.STREAM, seed, step, place))))
