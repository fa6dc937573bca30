"""Samplers that mix labeled and unlabeled images."""

from .draw import Draw
from .multi_source_sampler import (
    MultiSourceSampler,
    describe_sources,
    described_elsewhere,
    nearest_batch_sizes,
    seeded_permutation,
)

__all__ = [
    'Draw',
    'MultiSourceSampler',
    'describe_sources',
    'described_elsewhere',
    'nearest_batch_sizes',
    'seeded_permutation',
]
