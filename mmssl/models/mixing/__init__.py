"""Mixing of the images of one batch."""

from .cutmix import CutMix

__all__ = ['CutMix']
