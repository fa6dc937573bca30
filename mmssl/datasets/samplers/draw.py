"""The index that a multi-source sampler yields: an integer that knows which draw of which source it is."""

from typing import Any


class Draw(int):
    """Index into the concatenated data set, together with its place in the stream of its source.

    A plain ``int`` for everybody who does not look closer (data loaders, batch samplers, data sets). Arithmetic returns
    plain integers, so only the outermost data set can use the extra numbers.

    Attributes:
        source: Number of the source in the concatenated data set.
        draw: Global number of this draw within its source, over all ranks, starting at 0: the same draw has the same
            number whatever the world size, the number of workers and the history of resumes.
        seed: Seed of the sampler, equal on all ranks.
    """

    source: int
    draw: int
    seed: int

    def __new__(cls, index: int, source: int = 0, draw: int = 0, seed: int = 0) -> 'Draw':
        """Make the integer ``index`` and attach the rest; the defaults are what copying an ``int`` needs."""
        self = super().__new__(cls, index)
        self.source, self.draw, self.seed = source, draw, seed
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Draws travel to worker processes in pickled form.
        return Draw, (int(self), self.source, self.draw, self.seed)

    def __repr__(self) -> str:
        return f'Draw({int(self)}, source={self.source}, draw={self.draw}, seed={self.seed})'
