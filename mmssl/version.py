"""The version of mmssl, and nothing else."""

__version__ = '0.1.0'
