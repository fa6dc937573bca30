"""Auxiliary networks that judge labels."""

from .reliability_estimator import ReliabilityEstimator

__all__ = ['ReliabilityEstimator']
