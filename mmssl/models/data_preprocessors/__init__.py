"""Data preprocessors for batches with several branches."""

from .multi_branch_data_preprocessor import MultiBranchDataPreprocessor

__all__ = ['MultiBranchDataPreprocessor']
