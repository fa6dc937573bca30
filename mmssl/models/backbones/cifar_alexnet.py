"""AlexNet for images of 32 x 32 pixels, without batch normalization and without hidden linear layers."""

from typing import Any

from mmengine.model import BaseModule
from torch import Tensor, nn

from mmssl.registry import MODELS

# Input and output channels and kernel of each convolution; the first has stride 4.
CONVOLUTIONS = ((3, 64, 11), (64, 192, 5), (192, 384, 3), (384, 256, 3), (256, 256, 3))
# Convolutions that max pooling follows.
POOLED = (0, 1, 4)
SMALLEST = 29


@MODELS.register_module()
class CIFARAlexNet(BaseModule):
    """The AlexNet that experiments on CIFAR-10 use, such as those of ADR (paper 4.1: "without batch normalization").

    The five convolutions of AlexNet (Krizhevsky, 2014) with paddings and poolings for 32 x 32 pixels, and nothing
    behind them: with mmpretrain's ``LinearClsHead(num_classes=10, in_channels=256)`` the network has 2,472,266
    parameters. mmpretrain's own ``AlexNet`` has larger poolings, which leave nothing of such an image. Without
    normalization, a learning rate of 0.01 is the usual start.

    Args:
        init_cfg: Initialization, as in mmengine's ``BaseModule``. Default: None, that of PyTorch's ``nn.Conv2d``.
    """

    def __init__(self, init_cfg: dict | list[dict] | None = None) -> None:
        super().__init__(init_cfg)
        layers: list[nn.Module] = []
        for index, (inputs, outputs, kernel) in enumerate(CONVOLUTIONS):
            layers += [nn.Conv2d(inputs, outputs, kernel, stride=1 if index else 4, padding=kernel // 2),
                       nn.ReLU(inplace=True)]  # fmt: skip
            if index in POOLED:
                layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)

    def forward(self, inputs: Tensor, *_: Any) -> tuple[Tensor]:
        """Features of the images.

        Args:
            inputs: Normalized images, float, (N, 3, H, W), H and W >= 29.

        Returns:
            One map, (N, 256, H // 32, W // 32) for sides that 32 divides: (N, 256, 1, 1) for 32 x 32 pixels.

        Raises:
            ValueError: The images are smaller.
        """
        if min(inputs.shape[-2:]) < SMALLEST:
            raise ValueError(f'mmssl.CIFARAlexNet: images must have at least {SMALLEST} x {SMALLEST} pixels, got '
                             f'{tuple(inputs.shape[-2:])}')
        return (self.features(inputs), )
