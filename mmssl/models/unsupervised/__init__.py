"""Models that learn from images without any label."""

from .unsupervised_segmentor import UnsupervisedSegmentor

__all__ = ['UnsupervisedSegmentor']
