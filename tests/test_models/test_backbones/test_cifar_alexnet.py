"""The AlexNet of CIFAR-10: parameters, shapes, and what it refuses."""

import pytest
import torch

from mmssl.models.backbones import CIFARAlexNet
from mmssl.registry import MODELS


def test_parameters_and_shape() -> None:
    model = MODELS.build(dict(type='mmssl.CIFARAlexNet'))
    # Weights and biases of each convolution, and a linear layer of ten classes behind them.
    convolutions = [64 * 3 * 121, 192 * 64 * 25, 384 * 192 * 9, 256 * 384 * 9, 256 * 256 * 9]
    biases = 64 + 192 + 384 + 256 + 256
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == sum(convolutions) + biases
    assert count + 256 * 10 + 10 == 2_472_266
    assert not any(isinstance(module, torch.nn.modules.batchnorm._NormBase) for module in model.modules())
    (features,) = model(torch.randn(2, 3, 32, 32))
    assert features.shape == (2, 256, 1, 1)
    assert (features >= 0).all()


@pytest.mark.parametrize('size, expected', [((29, 29), (1, 1)), ((64, 96), (2, 3))])
def test_other_sizes(size: tuple[int, int], expected: tuple[int, int]) -> None:
    assert CIFARAlexNet()(torch.randn(1, 3, *size))[0].shape[-2:] == expected


def test_too_small_images_are_refused() -> None:
    with pytest.raises(ValueError, match=r'mmssl\.CIFARAlexNet: .*29 x 29 pixels, got \(28, 32\)'):
        CIFARAlexNet()(torch.randn(1, 3, 28, 32))
