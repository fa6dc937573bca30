"""Module whose buffers belong to one run: a new run that starts from the weights of another begins without them."""

import torch
from torch import Tensor, nn


class RunState(nn.Module):
    """Keeps the start of every buffer that :meth:`add_state` registers."""

    def __init__(self) -> None:
        super().__init__()
        self._starts: dict[str, Tensor] = {}

    def add_state(self, name: str, start: Tensor) -> None:
        """Register the buffer ``name``, which begins as ``start``."""
        self._starts[name] = start.clone()
        self.register_buffer(name, start)

    @torch.no_grad()
    def reset(self) -> None:
        """Let every buffer begin again, for a new run that has loaded a checkpoint of another (``load_from``)."""
        for name, start in self._starts.items():
            getattr(self, name).copy_(start)
