"""Wide residual networks for small images, as the FixMatch family uses them."""

from collections.abc import Sequence
from typing import Any

import torch
from mmengine.model import BaseModule
from torch import Tensor, nn

from mmssl.registry import MODELS

SLOPE = 0.1


class WideBlock(nn.Module):
    """Pre-activation residual block of two 3x3 convolutions.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output; where they differ from the input's, a 1x1 convolution is the shortcut.
        stride: Of the first convolution and of the shortcut.
        bn_momentum: Of batch normalization, in PyTorch's sense.
        activate_before_residual: Whether, in a block that changes the width, both ways start from the normalized and
            activated input. Otherwise both start from the raw one, and the block has no first normalization.
    """

    def __init__(self, in_channels: int, out_channels: int, stride: int, bn_momentum: float,
                 activate_before_residual: bool) -> None:
        super().__init__()
        changes = in_channels != out_channels
        if stride != 1 and not changes:
            raise ValueError(f'mmssl.WideResNet: a stage of stride {stride} must change the width, but has '
                             f'{in_channels} channels before and after; use another `widen_factor` or `base_channels`')
        self.starts_raw = changes and not activate_before_residual
        # The reference has this normalization in every block, but does not use it in those that start raw: parameters
        # without a gradient stop distributed training.
        self.bn1 = None if self.starts_raw else nn.BatchNorm2d(in_channels, momentum=bn_momentum)
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels, momentum=bn_momentum)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.act = nn.LeakyReLU(SLOPE)
        self.shortcut = nn.Conv2d(in_channels, out_channels, 1, stride=stride, bias=False) if changes else None

    def forward(self, inputs: Tensor) -> Tensor:
        """Map (N, in_channels, H, W) to (N, out_channels, H / stride, W / stride)."""
        start = inputs if self.bn1 is None else self.act(self.bn1(inputs))
        out = self.conv2(self.act(self.bn2(self.conv1(start))))
        return out + (inputs if self.shortcut is None else self.shortcut(start))


@MODELS.register_module()
class WideResNet(BaseModule):
    """WRN-28-2, WRN-28-8, WRN-37-2 and smaller ones (Zagoruyko & Komodakis, 2016), as the FixMatch family has them.

    A 3x3 convolution with bias, stages of ``(depth - stages - 1) / (2 * stages)`` pre-activation blocks each, and a
    last normalization. LeakyReLU with slope 0.1; momentum of batch normalization 0.001, its eps 1e-5 in the blocks and
    1e-3 at the end; convolutions drawn from He's normal distribution by fan-out (gain: square root of 2), biases 0.
    For a classifier: ``GlobalAveragePooling`` as neck and ``LinearClsHead(in_channels=out_channels)``, whose weights
    the reference draws from Xavier's normal distribution (``init_cfg`` of the head).

    ===========  =======  ==============  ================  ==========
    network      depth    widen_factor    strides           output
    ===========  =======  ==============  ================  ==========
    WRN-28-2     28       2               ``(1, 2, 2)``     128
    WRN-28-8     28       8               ``(1, 2, 2)``     512
    WRN-37-2     37       2               ``(2, 2, 2, 2)``  256
    ===========  =======  ==============  ================  ==========

    Args:
        depth: Weight layers. Default: 28.
        widen_factor: Width of all stages, relative to ``base_channels``, twice it, four times it, ... Default: 2.
        strides: Stride of each stage, which also says how many there are. Default: ``(1, 2, 2)``.
        stem_stride: Stride of the first convolution. Default: 1.
        base_channels: Channels after the first convolution. Default: 16.
        in_channels: Channels of the images. Default: 3.
        bn_momentum: In PyTorch's sense. Default: 0.001, for hundreds of thousands of iterations; short trainings need
            more (0.1 is PyTorch's default), or evaluation starts from statistics of the first iterations.
        activate_before_residual: ``'first'``: the block that widens the first stage normalizes and activates its input
            before the shortcut branches off, the widening blocks of later stages use the raw input. ``'all'``: all of
            them do the former. Default: ``'first'``.
        init_cfg: As in mmengine's ``BaseModule``, on top of the initialization above. Default: None.

    Raises:
        ValueError: The stages cannot be as deep as ``depth`` says, or another value is not as described.
    """

    def __init__(self,
                 depth: int = 28,
                 widen_factor: int = 2,
                 strides: Sequence[int] = (1, 2, 2),
                 stem_stride: int = 1,
                 base_channels: int = 16,
                 in_channels: int = 3,
                 bn_momentum: float = 0.001,
                 activate_before_residual: str = 'first',
                 init_cfg: dict | list[dict] | None = None) -> None:
        super().__init__(init_cfg)
        stages = len(strides)
        if stages == 0 or (depth - 1 - stages) % (2 * stages) or depth <= stages + 1:
            examples = [1 + stages + 2 * stages * blocks for blocks in (1, 2, 3, 4)]
            raise ValueError(f'mmssl.WideResNet: `depth` of {stages} stages (`strides`={tuple(strides)}) must be one '
                             f'of {examples}, ..., got {depth}')
        if activate_before_residual not in ('first', 'all'):
            raise ValueError("mmssl.WideResNet: `activate_before_residual` must be 'first' or 'all', got "
                             f'{activate_before_residual!r}')
        if not 0 < bn_momentum <= 1:
            raise ValueError(f'mmssl.WideResNet: `bn_momentum` must be in (0, 1], got {bn_momentum!r}')
        blocks = (depth - 1 - stages) // (2 * stages)
        self.stem = nn.Conv2d(in_channels, base_channels, 3, stride=stem_stride, padding=1)
        self.stages = nn.ModuleList()
        width = base_channels
        for number, stride in enumerate(strides):
            out, layers = base_channels * widen_factor * 2**number, []
            for block in range(blocks):
                before = activate_before_residual == 'all' or number == 0
                layers.append(WideBlock(width, out, stride if block == 0 else 1, bn_momentum, before))
                width = out
            self.stages.append(nn.Sequential(*layers))
        self.bn = nn.BatchNorm2d(width, momentum=bn_momentum, eps=1e-3)
        self.act = nn.LeakyReLU(SLOPE)
        self.out_channels = width
        self._draw()

    def _draw(self) -> None:
        """Draw the weights."""
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                # With a slope of 0, the default of `a`, as the reference calls it.
                nn.init.kaiming_normal_(module.weight, mode='fan_out', nonlinearity='leaky_relu')
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def init_weights(self) -> None:
        """Draw the weights again, from the random state of the runner, then follow ``init_cfg``."""
        with torch.no_grad():
            self._draw()
        super().init_weights()

    def forward(self, inputs: Tensor, *_: Any) -> tuple[Tensor]:
        """Features of the images.

        Args:
            inputs: Normalized images, float, (N, in_channels, H, W).

        Returns:
            One map, (N, out_channels, H', W'), 8 x 8 for WRN-28 and images of 32 x 32 pixels.
        """
        out = self.stem(inputs)
        for stage in self.stages:
            out = stage(out)
        return (self.act(self.bn(out)), )
