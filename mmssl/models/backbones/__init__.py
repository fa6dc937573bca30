"""Backbones that mmpretrain lacks."""

from .cifar_alexnet import CIFARAlexNet
from .wide_resnet import WideResNet

__all__ = ['CIFARAlexNet', 'WideResNet']
