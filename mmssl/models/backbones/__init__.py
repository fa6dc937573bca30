"""Backbones that mmpretrain lacks."""

from .cifar_alexnet import CIFARAlexNet

__all__ = ['CIFARAlexNet']
