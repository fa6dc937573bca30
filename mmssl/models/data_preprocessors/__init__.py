"""Filled by its modules."""
