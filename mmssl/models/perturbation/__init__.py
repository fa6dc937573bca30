"""Perturbations of features inside a model."""

from .feature_dropout import FeatureDropout

__all__ = ['FeatureDropout']
