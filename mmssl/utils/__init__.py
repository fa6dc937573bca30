"""Helpers that belong to no single method."""
