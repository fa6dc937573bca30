"""Loops of training and validation."""

__all__: list[str] = []
