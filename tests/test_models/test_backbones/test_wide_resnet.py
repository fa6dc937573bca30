"""Wide residual networks against a second implementation, written as the code of the FixMatch family is."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from mmssl.models.backbones import WideResNet


class PlainBlock(nn.Module):
    """With the unused normalization of the reference."""

    def __init__(self, inputs, outputs, stride, before):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs, momentum=0.001)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs, momentum=0.001)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.same, self.before = inputs == outputs, before
        self.shortcut = None if self.same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        if not self.same and self.before:
            x = F.leaky_relu(self.bn1(x), 0.1)
        else:
            out = F.leaky_relu(self.bn1(x), 0.1)
        out = F.leaky_relu(self.bn2(self.conv1(out if self.same else x)), 0.1)
        out = self.conv2(out)
        return (x if self.same else self.shortcut(x)) + out


class PlainWideResNet(nn.Module):

    def __init__(self, blocks, widths, strides):
        super().__init__()
        self.stem = nn.Conv2d(3, widths[0], 3, 1, 1, bias=True)
        layers = []
        for stage, stride in enumerate(strides):
            for block in range(blocks):
                inputs = widths[stage] if block == 0 else widths[stage + 1]
                layers.append(PlainBlock(inputs, widths[stage + 1], stride if block == 0 else 1, stage == 0))
        self.blocks = nn.Sequential(*layers)
        self.bn = nn.BatchNorm2d(widths[-1], momentum=0.001, eps=1e-3)

    def forward(self, x):
        return F.leaky_relu(self.bn(self.blocks(self.stem(x))), 0.1)


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize('kwargs, blocks, widths, strides', [
    (dict(depth=10, widen_factor=2), 1, (16, 32, 64, 128), (1, 2, 2)),
    (dict(depth=16, widen_factor=1, strides=(1, 2, 2)), 2, (16, 16, 32, 64), (1, 2, 2)),
    (dict(depth=13, widen_factor=2, strides=(2, 2, 2, 2)), 1, (16, 32, 64, 128, 256), (2, 2, 2, 2)),
])
def test_equals_the_plain_network(kwargs, blocks, widths, strides):
    """Same weights, same features, gradients and running statistics."""
    ours, plain = WideResNet(**kwargs).double(), PlainWideResNet(blocks, widths, strides).double()
    flat = [block for stage in ours.stages for block in stage]
    pairs = [(ours.stem, plain.stem), (ours.bn, plain.bn)]
    for mine, theirs in zip(flat, plain.blocks, strict=True):
        pairs += [(getattr(mine, name), getattr(theirs, name)) for name in
                  ('bn1', 'conv1', 'bn2', 'conv2', 'shortcut') if getattr(mine, name) is not None]
        assert mine.starts_raw == (not theirs.same and not theirs.before)
    for mine, theirs in pairs:
        theirs.load_state_dict(mine.state_dict())
    images = torch.randn(3, 3, 16, 16, dtype=torch.float64)
    (features, ), expected = ours(images), plain(images)
    torch.testing.assert_close(features, expected)
    weight = torch.randn_like(features)
    (features * weight).sum().backward()
    (expected * weight).sum().backward()
    for mine, theirs in pairs:
        torch.testing.assert_close(mine.weight.grad, theirs.weight.grad)
        if isinstance(mine, nn.BatchNorm2d):
            torch.testing.assert_close(mine.running_var, theirs.running_var)
    # What distributed training needs: nothing without a gradient.
    assert all(parameter.grad is not None for parameter in ours.parameters())
    torch.testing.assert_close(ours.eval()(images)[0], plain.eval()(images))


def test_published_counts():
    """1,467,610 parameters is WRN-28-2 with ten classes as it is usually given: without the bias of the first layer."""
    network = WideResNet(depth=28, widen_factor=2)
    unused = 2 * (32 + 64)  # the normalizations that the reference does not use
    assert count(network) + 129 * 10 == 1_467_610 + 16 - unused
    assert network.out_channels == 128


def test_wrn_28_8_and_37_2():
    """C.5: widths 128/256/512, and a fourth stage."""
    with torch.device('meta'):
        wide, deep = WideResNet(depth=28, widen_factor=8), WideResNet(depth=37, widen_factor=2, strides=(2, 2, 2, 2))
        plain_wide = PlainWideResNet(4, (16, 128, 256, 512), (1, 2, 2))
        plain_deep = PlainWideResNet(4, (16, 32, 64, 128, 256), (2, 2, 2, 2))
    assert count(wide) == count(plain_wide) - 2 * (128 + 256)
    assert count(deep) == count(plain_deep) - 2 * (32 + 64 + 128)
    assert [len(stage) for stage in deep.stages] == [4, 4, 4, 4]
    assert deep(torch.empty(2, 3, 96, 96, device='meta'))[0].shape == (2, 256, 6, 6)
    assert wide(torch.empty(2, 3, 32, 32, device='meta'))[0].shape == (2, 512, 8, 8)


def test_settings_of_the_layers():
    network = WideResNet(depth=10, widen_factor=4)
    norms = [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
    assert {norm.momentum for norm in norms} == {0.001}
    assert [norm.eps for norm in norms] == [1e-5] * (len(norms) - 1) + [1e-3]
    assert [name for name, _ in network.named_parameters() if name.endswith('bias') and 'bn' not in name] == [
        'stem.bias']
    assert (network.stem.bias == 0).all()
    weight = network.stages[2][0].conv2.weight
    # He's distribution by fan-out: 2 / (9 * 256).
    assert weight.std().item() == pytest.approx((2 / (9 * 256))**0.5, rel=0.02)


def test_weights_follow_the_seed_of_the_runner():
    network = WideResNet(depth=10, widen_factor=1)
    drawn = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        network.init_weights()
        drawn.append(network.stages[0][0].conv1.weight.clone())
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])


def test_all_blocks_activate_before_the_shortcut():
    network = WideResNet(depth=10, widen_factor=2, activate_before_residual='all')
    assert all(block.bn1 is not None for stage in network.stages for block in stage)


@pytest.mark.parametrize('kwargs, message', [
    (dict(depth=27), r'`depth` of 3 stages .* must be one of \[10, 16, 22, 28\], ..., got 27'),
    (dict(depth=28, strides=(2, 2, 2, 2)), r'must be one of \[13, 21, 29, 37\], ..., got 28'),
    (dict(activate_before_residual=True), "`activate_before_residual` must be 'first' or 'all', got True"),
    (dict(bn_momentum=0.), r'`bn_momentum` must be in \(0, 1\], got 0.0'),
    (dict(widen_factor=1, strides=(2, 2, 2)), 'a stage of stride 2 must change the width'),
])
def test_wrong_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        WideResNet(**kwargs)
